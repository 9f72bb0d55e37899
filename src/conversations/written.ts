/** Rollouts in formats of others: what is told of each, as JSON that any reader takes. */
import { digest } from '../artifacts/hash';
import type { Message, ToolCall } from '../domain/messages';
import type { Rollout } from '../domain/rollout';
import { isTooDeep } from './messages';

/** Rollouts that were made together: of one policy, at one time. */
export interface WrittenBatch {
  campaign: string;
  /** For people, such as `test: trace`. */
  title: string;
  /** What it was made for, and of which arm, capability or policy. */
  stage: string;
  what: string;
  of: string;
  sha256: string;
  /** sha256 of the adapters and routers that it was made with. */
  adapters: string[];
  routers: string[];
}

export interface WrittenRollout {
  rollout: Rollout;
  seed: number;
  /** Capabilities that it lacks, by the labels. */
  labels: string[];
}

export interface LogWriter {
  /** One after the other. @returns whether the format has a place for it. */
  add(one: WrittenRollout): Promise<boolean>;
  close(): Promise<void>;
}

/** What leads back to the campaign. */
export const originOf = (batch: WrittenBatch, { rollout, seed, labels }: WrittenRollout) => ({
  ...{ campaign: batch.campaign, stage: batch.stage, arm: batch.of, batch: batch.sha256 },
  ...{ rollout: rollout.key, task: rollout.task, attempt: rollout.attempt, seed },
  ...{ adapters: adaptersOf(batch, rollout), routers: batch.routers },
  ...(labels.length > 0 && { labels }),
  ...(rollout.status === 'scored' && {
    stop_reason: rollout.stopReason,
    ...(rollout.branch !== undefined && { branch: rollout.branch }),
    ...(rollout.hinted && { hinted: true }),
    ...(rollout.routed && { routed: rollout.routed.chosen, probabilities: rollout.routed.probabilities }),
    ...(rollout.reference && { reference: rollout.reference }),
  }),
});

/** Those that the router chose, where one did. */
export const adaptersOf = (batch: WrittenBatch, rollout: Rollout): string[] =>
  rollout.status === 'scored' && rollout.routed
    ? rollout.routed.policy.adapters.map(({ ref }) => ref.sha256)
    : batch.adapters;

export const modelName = ({ of }: WrittenBatch): string => `campaign/${of || 'base'}`;

/** Readers in Python stop at a thousand levels, and an agent may write more. */
export const writtenArguments = ({ arguments: values }: ToolCall): ToolCall['arguments'] =>
  isTooDeep(values) ? { 'not written': 'it is nested too deep' } : values;

/** What a simulated user did with tools of its own, which no format has a place for. */
export const userCalls = (message: Message): ToolCall[] => (message.role === 'user' ? (message.toolCalls ?? []) : []);

/** JSON in which half a surrogate pair, which readers in Python refuse, is U+FFFD. */
export const written = (value: unknown): string =>
  JSON.stringify(value).replace(/\\(u[dD][89a-fA-F][0-9a-fA-F]{2}|.)/g, (escape, code: string) =>
    code.length > 1 ? '\\ufffd' : escape,
  );

const LONGEST_NAME = 100;

/** A text as a file's name, another one for every text. */
export function fileNameOf(text: string): string {
  if (text.length <= LONGEST_NAME && /^[\w=+][\w.=+-]*$/.test(text)) return text;
  const name = text.replace(/[^\w=+]+/g, '-').slice(0, LONGEST_NAME);
  return `${name.replace(/^-|-$/g, '')}-${digest(text).slice(0, 8)}`.replace(/^-/, '');
}
