/**
 * Tools of the conformance checks: findings, sampled tasks, and episodes that are played by a script and closed.
 */
import { isDeepStrictEqual } from 'node:util';
import type { z } from 'zod';
import {
  type Action,
  type Environment,
  type EnvironmentDescription,
  type Episode,
  type Evaluation,
  evaluationSchema,
  type ResetResult,
  resetResultSchema,
  type Split,
  type StepResult,
  stepResultSchema,
  type StopReason,
  type Task,
} from '../../domain/environment';
import { reasonOf } from '../../domain/failures';
import type { AssistantMessage } from '../../domain/messages';
import { checkAnswers, EnvironmentError, quoted, readAnswer, type Method, methods } from '../protocol';
import { exampleOf } from '../json-schema';

export interface Finding {
  /** The method of the protocol, with what was done if that is not plain. */
  check: string;
  problem: string;
  fix: string;
}

type Add = (check: string, problem: string, fix: string) => void;
export type Report = ReturnType<typeof createReport>;

/** Ends the checks, because the next request would fail in the same way, and late. */
export class CannotGoOn extends Error {}

/** The number of deaths after which a process is not started again. */
const DEATHS = 4;
/** Longer than any message of ours with two quotes in it. */
const LENGTH = 6_000;

export function createReport(onNote: (note: Finding) => void) {
  const findings: Finding[] = [];
  let deaths = 0;
  const add: Add = (check, problem, fix) => {
    const finding = { check, problem: quoted(problem, LENGTH), fix };
    if (!findings.some((known) => known.problem === finding.problem)) findings.push(finding);
  };
  const note: Add = (check, problem, fix) => onNote({ check, problem: quoted(problem, LENGTH), fix });

  function addError(check: string, error: EnvironmentError): void {
    const { method, problem, fix, stderr, silent, lacks } = error.parts;
    if (lacks) return note(check, `not checked, for there is no ${lacks} here: ${problem}`, fix);
    const longer = silent ? '; a campaign file waits longer with target.silenceSeconds' : '';
    const lastWords = stderr ? `; its last words on stderr:\n${stderr}` : '';
    add(method === undefined || check.startsWith(method) ? check : method, problem, `${fix}${longer}${lastWords}`);
    if (silent || (error.type === 'EnvironmentDied' && ++deaths >= DEATHS)) throw new CannotGoOn();
  }

  return {
    findings,
    add,
    /** Remarks about an environment that keeps its contract. */
    note,
    /** Adds all problems of which the condition holds. */
    addAll(check: string, rules: readonly (readonly [isWrong: boolean, problem: string, fix: string])[]): void {
      for (const [isWrong, problem, fix] of rules) if (isWrong) add(check, problem, fix);
    },
    /** Returns whether the two differ, and adds a finding if they do. */
    differs(o: { check: string; what: string; fix: string; one: unknown; other: unknown }): boolean {
      const difference = firstDifference(o.one, o.other);
      if (difference !== undefined) add(o.check, `${o.what}: ${difference}`, o.fix);
      return difference !== undefined;
    },
    /** Returns undefined and adds a finding if `work` throws. */
    async attempt<Result>(check: string, work: () => Promise<Result>): Promise<Result | undefined> {
      try {
        return await work();
      } catch (error) {
        if (error instanceof CannotGoOn) throw error;
        if (error instanceof EnvironmentError) addError(check, error);
        else add(check, reasonOf(error), 'answer instead of failing; the message says what failed');
        return undefined;
      }
    },
  };
}

/** A task that episodes are played of. */
export interface Sample {
  task: string;
  split: Split;
  start?: ResetResult;
  /** The evaluation of an episode in which nothing was done. */
  untouched?: Evaluation;
}

export type TaskLists = Record<Split, Task[]>;

/** An environment under check, and what is known of it so far. */
export interface Checked extends Report, Player {
  description: EnvironmentDescription;
  lists: TaskLists;
  /** Tasks of both splits in turn. */
  samples: Sample[];
  /** True once a simulated user has spoken: a stand-in, with which no task can be solved. */
  isUserPlayed: () => boolean;
  /** False once a check has taken long, so that a slow environment gets its findings soon. */
  hasTime: () => boolean;
}

/** At least two samples, and more while there is time. */
export function* timely({ samples, hasTime }: Checked): Generator<Sample> {
  for (const [n, sample] of samples.entries()) {
    if (n > 1 && !hasTime()) return;
    yield sample;
  }
}

/** `messages.1.content: "a", then "b"`: the first place where they differ. */
function firstDifference(one: unknown, other: unknown, path = ''): string | undefined {
  if (isDeepStrictEqual(one, other)) return undefined;
  if (isObject(one) && isObject(other) && Array.isArray(one) === Array.isArray(other)) {
    for (const key of new Set([...Object.keys(one), ...Object.keys(other)])) {
      const difference = firstDifference(one[key], other[key], path === '' ? key : `${path}.${key}`);
      if (difference !== undefined) return difference;
    }
  }
  const excerpt = (value: unknown) => quoted(JSON.stringify(value) ?? 'nothing', 120);
  return `${path || '(all of it)'}: ${excerpt(one)}, then ${excerpt(other)}`;
}

const isObject = (value: unknown): value is Record<string, unknown> => typeof value === 'object' && value !== null;

type Timed = Exclude<Method, 'close'>;
/** Called after each request with its seconds. */
export type OnRequest = (method: Timed, seconds: number) => void;

/** Returns the environment with answers checked as those of a process: a violation of the protocol is an EnvironmentError. */
export function strict(
  environment: Environment,
  onRequest: OnRequest = () => undefined,
  onReward: (reward: number) => void = () => undefined,
): Environment {
  function timed<Answer>(method: Timed, request: () => Promise<Answer>): Promise<Answer> {
    const begun = performance.now();
    return request().finally(() => onRequest(method, (performance.now() - begun) / 1000));
  }
  const read = <S extends z.ZodType>(method: Timed, schema: S, answer: unknown): z.infer<S> =>
    readAnswer('environment', method, { schema, answer });
  return {
    describe: async () =>
      read('describe', methods.describe.result, await timed('describe', () => environment.describe())),
    async tasks(split) {
      const tasks = await timed('tasks', () => environment.tasks(split));
      return read('tasks', methods.tasks.result, { tasks }).tasks;
    },
    async reset(task) {
      const episode = await timed('reset', () => environment.reset(task));
      return {
        start: read('reset', resetResultSchema, episode.start),
        async step(message) {
          const result = read('step', stepResultSchema, await timed('step', () => episode.step(message)));
          // Answers to a simulated user's own calls were looked at where they were given.
          const messages = result.messages.filter((one) => !(one.role === 'tool' && one.requestor === 'user'));
          checkAnswers('environment', message, { ...result, messages });
          return result;
        },
        async evaluate(reason) {
          const answer = await timed('evaluate', () => episode.evaluate(reason));
          const evaluation = read('evaluate', evaluationSchema, answer);
          onReward(evaluation.reward);
          return evaluation;
        },
        close: () => episode.close(),
      };
    },
    close: () => environment.close(),
  };
}

const NEARLY_ONE = 0.99;

/** Problem and fix to note for a reward that is nearly 1: a sum of weights may miss it by more than rounding. */
export const nearlyOne = (reward: number): [problem: string, fix: string] | undefined =>
  reward === 1 || reward < NEARLY_ONE
    ? undefined
    : [`reward is ${reward}, which is no success`, 'return 1 where all is right'];

export const SEED = 1;

export type Player = ReturnType<typeof playerOf>;

/** Episodes of a task that are opened, played and closed. */
export function playerOf(environment: Environment) {
  const open = (task: string): Promise<Episode> => environment.reset({ id: task, seed: SEED });
  async function within<Result>(task: string, work: (episode: Episode) => Promise<Result>): Promise<Result> {
    const episode = await open(task);
    try {
      return await work(episode);
    } finally {
      await episode.close();
    }
  }
  return {
    open,
    start: (task: string) => within(task, async ({ start }) => start),
    /** The answer to one message. */
    answer: (task: string, message: AssistantMessage) => within(task, (episode) => episode.step(message)),
    /** The evaluation of an episode without an action. */
    untouched: (task: string) => within(task, (episode) => evaluationOf(episode, 'agent_stop')),
    play: (task: string, script: readonly AssistantMessage[]) => within(task, (episode) => playIn(episode, script)),
  };
}

/** Says all of the script, or as much as the episode lasts. The evaluation is undefined where only a judge could say. */
async function playIn(episode: Episode, script: readonly AssistantMessage[]) {
  const results: StepResult[] = [];
  for (const message of script) {
    const result = await episode.step(message);
    results.push(result);
    if (result.done) break;
  }
  return { results, evaluation: await evaluationOf(episode, results.at(-1)?.stopReason ?? 'agent_stop') };
}

/** The checks have no judge: what needs one has no reward here. */
async function evaluationOf(episode: Episode, reason: StopReason): Promise<Evaluation | undefined> {
  try {
    return await episode.evaluate(reason);
  } catch (error) {
    if (error instanceof EnvironmentError && error.parts.lacks === 'judge') return undefined;
    throw error;
  }
}

export const say = (content: string): AssistantMessage => ({ role: 'assistant', content });

export const callsOf = (...calls: Action[]): AssistantMessage => ({
  role: 'assistant',
  content: '',
  toolCalls: calls.map((call, n) => ({ ...call, id: `call_${n}` })),
});

/** The sampled task of train with the most reference actions, else the first. */
export function richest(samples: readonly Sample[]): Sample {
  const actions = (sample: Sample) => sample.untouched?.reference?.actions.length ?? 0;
  const train = samples.filter(({ split }) => split === 'train');
  return train.reduce((best, sample) => (actions(sample) > actions(best) ? sample : best));
}

const CALLS = 6;

/** Calls each of a few tools, or the reference actions between reads, then says the facts, which ends most conversations. */
export function busyScript({ description: { tools }, samples }: Checked): AssistantMessage[] {
  const { actions = [], tell = [] } = richest(samples).untouched?.reference ?? {};
  const known = new Map(actions.flatMap((action) => Object.entries(action.arguments)));
  const calls = tools.slice(0, CALLS).flatMap(({ name, parameters }): Action[] => {
    const values = actions.find((action) => action.name === name)?.arguments ?? exampleOf(parameters, known);
    return isObject(values) ? [{ name, arguments: values as Action['arguments'] }] : [];
  });
  return [...[...calls, ...actions, ...calls].map((call) => callsOf(call)), say(factsOf({ tell }))];
}

export const factsOf = ({ tell }: { tell: readonly string[] }): string => [...tell, 'done .'].join(' . ');
