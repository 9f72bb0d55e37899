/** What all requests of the analyst have in common. Invariant: what stays the same from request to request stands first, byte for byte. */
import type { Lengths } from '../../domain/transcript';
import type { EnvironmentDescription } from '../../domain/environment';
import { OutsideFailure } from '../../domain/failures';
import type { ToolSchema } from '../../domain/messages';
import type { Work } from '../../domain/work';
import type { ScoredRollout } from '../../domain/rollout';
import type { Prompts } from '../../language-model/prompts';
import type { Asking, LanguageModel, Ledger } from '../../language-model/types';
import { tokensOf } from './chunks';

/** The analyst's options, opened. */
export interface Means {
  model: LanguageModel;
  prompts: Prompts;
  contextTokens: number;
  maxTokens: number;
  chunkTokens: number;
  labelsPerChunk: number;
  lengths: Lengths;
  repairs: number;
}

/** The target as prompts tell it. */
export const targetText = ({ policy, tools }: Pick<EnvironmentDescription, 'policy' | 'tools'>) => ({
  policy: policy.trim() || '(none is written down)',
  tools: tools.map(toolText).join('\n') || '(none)',
});

const toolText = ({ name, description, parameters, annotations }: ToolSchema): string =>
  `${name}${annotations?.readOnlyHint ? ' (changes nothing)' : ''}: ${description}\n  parameters: ${JSON.stringify(parameters)}`;

/** As the model's answers name them. */
export const byShortId = (
  rollouts: readonly ScoredRollout[],
  ids: ReadonlyMap<string, string>,
): Map<string, ScoredRollout> => new Map(rollouts.map((rollout) => [ids.get(rollout.key) ?? rollout.key, rollout]));

/**
 * What a model wrote, for people: `r14.16`, which only its prompt knew, is message 16 of a task and attempt; of the trajectory that the text is
 * about (`own`) the number is enough.
 */
export const readable = (text: string, rollouts: ReadonlyMap<string, ScoredRollout>, own: string): string =>
  text.replace(/\b(r\d+)(?:\.(\d+))?\b/g, (written, id: string, message?: string) => {
    const rollout = rollouts.get(id);
    if (!rollout) return written;
    const whole = `task ${rollout.task}, attempt ${rollout.attempt}`;
    if (message === undefined) return whole;
    return id === own ? `message ${message}` : `message ${message} of ${whole}`;
  });

/** Tokens that a request has left for what is not in `values`; its reply is allowed for, and a tenth for the estimate's error. */
export function roomIn(
  { prompts, contextTokens, maxTokens }: Pick<Means, 'prompts' | 'contextTokens' | 'maxTokens'>,
  name: string,
  values: Record<string, string>,
): number {
  const rest = prompts.render(name, values).reduce((sum, { content }) => sum + tokensOf(content), 0);
  const room = Math.floor(0.9 * (contextTokens - maxTokens)) - rest;
  if (room >= LEAST_ROOM) return room;
  const wanted = maxTokens + Math.ceil((rest + LEAST_ROOM) / 0.9);
  throw new OutsideFailure(
    'BadInput',
    `analyst.contextTokens is ${contextTokens}, of which maxTokens are ${maxTokens} and prompt, policy and tools about ${rest}: ` +
      `no room for trajectories; set contextTokens to ${wanted} or more (and take a model that has them), or lower maxTokens`,
  );
}
/** One short trajectory. */
const LEAST_ROOM = 1000;

/** Requests at once; each piece of a reply, and each one that is done, is progress. */
export async function askAll<Item, Answer>(o: {
  items: readonly Item[];
  step: string;
  ledger: Ledger;
  work: Work;
  /** Requests that are done, and those that will be made, beside these. */
  before?: number;
  after?: number;
  ask: (item: Item, asking: Asking) => Promise<Answer>;
}): Promise<Answer[]> {
  const { items, step, ledger, work, before = 0, after = 0, ask } = o;
  let done = before;
  const tell = () => work.progress(done, before + items.length + after);
  const asking: Asking = { ledger, step, signal: work.signal, onText: tell };
  // The others go on where one fails: what is being paid for is kept, and found again when the step is tried again.
  const settled = await Promise.allSettled(
    items.map(async (item) => {
      const answer = await ask(item, asking);
      done++;
      tell();
      return answer;
    }),
  );
  const failures = settled.flatMap((one) => (one.status === 'rejected' ? [one.reason as unknown] : []));
  // What no retry mends comes before what one does.
  if (failures.length > 0) throw failures.find((one) => one instanceof OutsideFailure && !one.retryable) ?? failures[0];
  return settled.flatMap((one) => (one.status === 'fulfilled' ? [one.value] : []));
}
