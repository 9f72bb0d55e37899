/**
 * What the conformance checks work with: findings, sampled tasks, episodes that are played by a script, and calls that the environment's own
 * schemas and reference actions allow. Invariant: every episode that is begun here is closed here.
 */
import { isDeepStrictEqual } from 'node:util';
import type {
  Action,
  Environment,
  EnvironmentDescription,
  Episode,
  Evaluation,
  Split,
  StepResult,
  StopReason,
} from '../../domain/environment';
import { reasonOf } from '../../domain/failures';
import type { AssistantMessage, ToolSchema } from '../../domain/messages';
import { EnvironmentError, quoted } from '../connection';
import { exampleOf, valueProblem } from '../json-schema';

export interface Finding {
  /** The method of the protocol; with what was done, where that is not plain. */
  check: string;
  problem: string;
  fix: string;
}

export type Add = (check: string, problem: string, fix: string) => void;

/** What has been found, and what is worth knowing of an environment that keeps its contract. */
export interface Findings {
  findings: Finding[];
  add: Add;
  note: Add;
  /** Undefined, and a finding, if it throws. */
  attempt<Result>(check: string, work: () => Promise<Result>): Promise<Result | undefined>;
}

/** Ends the checks: whatever is asked next would fail in the same way, and late. */
export class CannotGoOn extends Error {}

/** After so many deaths a process is not started again. */
const DEATHS = 4;
/** Longer than any message of ours with two quotes in it. */
const LENGTH = 6_000;

export function collectFindings(onNote: (note: Finding) => void): Findings {
  const findings: Finding[] = [];
  let deaths = 0;
  const add: Add = (check, problem, fix) => {
    const finding = { check, problem: quoted(problem, LENGTH), fix };
    if (!findings.some(({ problem: known }) => known === finding.problem)) findings.push(finding);
  };
  return {
    findings,
    add,
    note: (check, problem, fix) => onNote({ check, problem: quoted(problem, LENGTH), fix }),
    async attempt(check, work) {
      try {
        return await work();
      } catch (error) {
        if (error instanceof CannotGoOn) throw error;
        if (!(error instanceof EnvironmentError)) {
          add(check, reasonOf(error), 'answer instead of failing; the message says what failed');
          return undefined;
        }
        const { method, problem, fix, stderr, silent, lacks } = error.parts;
        if (lacks) {
          onNote({ check, problem: `not checked, for there is no ${lacks} here: ${problem}`, fix });
          return undefined;
        }
        const longer = silent ? '; --silence SECONDS waits longer' : '';
        const said = stderr ? `; its last words on stderr:\n${stderr}` : '';
        add(method === undefined || check.startsWith(method) ? check : method, problem, `${fix}${longer}${said}`);
        if (silent || (error.type === 'EnvironmentDied' && ++deaths >= DEATHS)) throw new CannotGoOn();
        return undefined;
      }
    },
  };
}

/** A task that episodes are played of. */
export interface Sample {
  task: string;
  split: Split;
  start: unknown;
  /** Of an episode in which nothing was done. */
  untouched?: Evaluation;
}

export interface Checked extends Findings {
  environment: Environment;
  description: EnvironmentDescription;
  /** Of both splits in turn. */
  samples: Sample[];
  lists: Record<Split, unknown>;
  /** True once a simulated user has spoken: a stand-in, with which no task can be solved. */
  isUserPlayed: () => boolean;
  /** False once a check has taken long: it ends with the samples that it has seen. */
  hasTime: () => boolean;
}

/** Of one check that goes through samples: a slow environment is told what there is to tell before anybody gives up. */
export const BUDGET_MS = 8_000;

/** Played of each split. More find more of what only some tasks have; these take a second with an honest environment. */
export const SAMPLES = 4;

/** `messages.1.content: "a", then "b"`: the first place. */
export function firstDifference(one: unknown, other: unknown, path = ''): string | undefined {
  if (isDeepStrictEqual(one, other)) return undefined;
  if (isRecord(one) && isRecord(other) && Array.isArray(one) === Array.isArray(other)) {
    for (const key of new Set([...Object.keys(one), ...Object.keys(other)])) {
      const found = firstDifference(one[key], other[key], path === '' ? key : `${path}.${key}`);
      if (found !== undefined) return found;
    }
  }
  return `${path || '(all of it)'}: ${shown(one)}, then ${shown(other)}`;
}

const isRecord = (value: unknown): value is Record<string, unknown> => typeof value === 'object' && value !== null;

const shown = (value: unknown): string => quoted(JSON.stringify(value) ?? 'nothing', 120);

export const SEED = 1;

export interface Played {
  results: StepResult[];
  /** Undefined where only a judge could say. */
  evaluation: Evaluation | undefined;
}

type Where = { environment: Environment; task: string };

export async function withEpisode<Result>(
  { environment, task }: Where,
  work: (episode: Episode) => Promise<Result>,
): Promise<Result> {
  const episode = await environment.reset({ id: task, seed: SEED });
  try {
    return await work(episode);
  } finally {
    await episode.close();
  }
}

/** Says all of the script, or as much as the episode lasts. */
export async function playIn(episode: Episode, script: readonly AssistantMessage[]): Promise<Played> {
  const results: StepResult[] = [];
  let reason: StopReason = 'agent_stop';
  for (const message of script) {
    const result = await episode.step(message);
    results.push(result);
    if (!result.done) continue;
    reason = result.stopReason ?? reason;
    break;
  }
  return { results, evaluation: await valued(episode, reason) };
}

/** The checks have no judge: what needs one has no reward here. */
export async function valued(episode: Episode, reason: StopReason): Promise<Evaluation | undefined> {
  try {
    return await episode.evaluate(reason);
  } catch (error) {
    if (error instanceof EnvironmentError && error.parts.lacks === 'judge') return undefined;
    throw error;
  }
}

export const play = (o: Where & { script: readonly AssistantMessage[] }): Promise<Played> =>
  withEpisode(o, (episode) => playIn(episode, o.script));

/** What one message is answered. */
export const answerTo = (o: Where & { message: AssistantMessage }): Promise<StepResult> =>
  withEpisode(o, (episode) => episode.step(o.message));

export const say = (content: string): AssistantMessage => ({ role: 'assistant', content });

export const callsOf = (...calls: { name: string; arguments: Record<string, unknown> }[]): AssistantMessage => ({
  role: 'assistant',
  content: '',
  toolCalls: calls.map((call, n) => ({ ...call, id: `call_${n}` })),
});

/** The observations of a message's calls, as one text. */
export const observed = ({ messages }: StepResult): string =>
  messages.flatMap((message) => (message.role === 'tool' ? [message.content] : [])).join('\n');

/** By the convention of most tools: an observation that begins with what failed. */
export const isError = (text: string): boolean =>
  /^\W*(error|exception|traceback|invalid|unknown|failed)\b/i.test(text);

/** The sampled task of train with the most reference actions, else the first. */
export function richest(samples: readonly Sample[]): Sample {
  const actions = (sample: Sample) => sample.untouched?.reference?.actions.length ?? 0;
  const train = samples.filter(({ split }) => split === 'train');
  return train.reduce((best, sample) => (actions(sample) > actions(best) ? sample : best));
}

/** The reference's own values by field: identifiers that there are. */
function knownValues(actions: readonly Action[]): Map<string, unknown> {
  return new Map(actions.flatMap((action) => Object.entries(action.arguments)));
}

/** Undefined where no arguments can be made up that fit. */
export function validCall(tool: ToolSchema, actions: readonly Action[] = []): Action | undefined {
  const own = actions.find(({ name }) => name === tool.name);
  const fits = (values: unknown): values is Action['arguments'] =>
    typeof values === 'object' && values !== null && valueProblem(tool.parameters, values) === undefined;
  for (const known of [knownValues(actions), new Map<string, unknown>()]) {
    const values = own?.arguments ?? exampleOf({ schema: tool.parameters, known });
    if (fits(values)) return { name: tool.name, arguments: values };
  }
  return undefined;
}

export const isRead = ({ annotations }: ToolSchema): boolean => annotations?.readOnlyHint === true;

const READS = 2;
const WRITES = 4;

/** Reads, writes, and reads again: what one episode does to another shows in it. The last words end most conversations. */
export function busyScript({ description, samples }: Checked, sample = richest(samples)): AssistantMessage[] {
  const { tools } = description;
  const { actions = [], tell = [] } = sample.untouched?.reference ?? {};
  const callsTo = (some: ToolSchema[]) => some.flatMap((tool) => validCall(tool, actions) ?? []);
  const reads = callsTo(tools.filter(isRead).slice(0, READS));
  const writes = actions.length > 0 ? actions : callsTo(tools.filter((tool) => !isRead(tool)).slice(0, WRITES));
  return [...[...reads, ...writes, ...reads].map((call) => callsOf(call)), say([...tell, 'done .'].join(' . '))];
}
