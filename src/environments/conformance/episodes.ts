/** Tools of the conformance checks: episodes that are played by a script and closed. */
import { isDeepStrictEqual } from 'node:util';
import type {
  Action,
  Environment,
  EnvironmentDescription,
  Episode,
  Evaluation,
  Reference,
} from '../../domain/environment';
import { type AssistantMessage, callAll, say } from '../../domain/messages';
import { isSuccess } from '../../domain/rollout';
import { exampleArguments } from '../json-schema';
import { EnvironmentError, quoted } from '../protocol';

export const SEED = 1;

/** Opens an episode of a task for `work`, and closes it. */
export async function within<Result>(
  environment: Environment,
  task: string,
  work: (episode: Episode) => Promise<Result>,
): Promise<Result> {
  const episode = await environment.reset({ id: task, seed: SEED });
  try {
    return await work(episode);
  } finally {
    await episode.close();
  }
}

/** Sends the messages of the script until the episode ends. The evaluation is undefined if it needs a judge. */
export async function play(episode: Episode, script: readonly AssistantMessage[]) {
  const results = [];
  for (const message of script) {
    const result = await episode.step(message);
    results.push(result);
    if (result.done) break;
  }
  return { results, evaluation: await evaluationOf(episode) };
}

/** Returns the evaluation; undefined if it needs a judge, which the checks do not have. */
export async function evaluationOf(episode: Episode): Promise<Evaluation | undefined> {
  try {
    return await episode.evaluate('agent_stop');
  } catch (error) {
    if (error instanceof EnvironmentError && error.parts.lacks === 'judge') return undefined;
    throw error;
  }
}

const CALLS = 6;

/** Calls each of a few tools around the reference actions, then says the facts, which ends most conversations. */
export function busyScript({ tools }: EnvironmentDescription, reference?: Reference): AssistantMessage[] {
  const { actions = [], tell = [] } = reference ?? {};
  const calls = tools.slice(0, CALLS).map(({ name, parameters }): Action => {
    const known = actions.find((action) => action.name === name)?.arguments;
    return { name, arguments: known ?? exampleArguments(parameters) };
  });
  return [...[...calls, ...actions, ...calls].map((call) => callAll([call])), say(factsOf(tell))];
}

const factsOf = (tell: readonly string[]): string => [...tell, 'done .'].join(' . ');

/** Mistakes that every policy makes at times: each is answered and is no error. */
export function mistakes(
  { tools }: EnvironmentDescription,
  script: readonly AssistantMessage[],
): [what: string, message: AssistantMessage][] {
  const { name = 'tool', parameters } = tools[0] ?? {};
  const wrong = Object.fromEntries(Object.keys(parameters?.properties ?? {}).map((field) => [field, ['wrong']]));
  const calls = script.flatMap(({ toolCalls = [] }) => toolCalls);
  const several = [0, 1, 2].flatMap((n) => calls[n % calls.length] ?? []);
  return [
    ...(several.length > 0 ? [['3 calls in one message', callAll(several)] as [string, AssistantMessage]] : []),
    ['a call of an unknown tool', callAll([{ name: 'no_such_tool', arguments: {} }])],
    ['a call without arguments', callAll([{ name, arguments: {} }])],
    ['arguments of a wrong type', callAll([{ name, arguments: { ...wrong, unexpected: { nested: [null] } } }])],
    ['neither text nor calls', say('')],
  ];
}

/** Number of times that the facts are stated to a user who keeps asking. */
const WORDS = 3;

/** Plays the reference: the needed writes, one in each message, then the facts. Returns what went wrong; undefined if the reward is 1. */
export async function unsolved(
  episode: Episode,
  task: string,
  { actions, tell }: Reference,
): Promise<string | undefined> {
  const facts = Array<AssistantMessage>(WORDS).fill(say(factsOf(tell)));
  const { results, evaluation } = await play(episode, [...actions.map((action) => callAll([action])), ...facts]);
  if (!evaluation || isSuccess(evaluation)) return undefined;
  const answers = results.flatMap(({ messages }) =>
    messages.flatMap(({ role, content }) => (role === 'tool' ? [content] : [])),
  );
  const seen = answers.length === 0 ? '' : `, answered "${quoted(answers.join(' | '), 200)}"`;
  const breakdown = quoted(JSON.stringify(evaluation.breakdown), 200);
  return `reward of task ${quoted(task, 60)} is ${evaluation.reward} for its own reference.actions: breakdown ${breakdown}${seen}`;
}

/** `messages.1.content: "a", then "b"`: the first place where they differ. */
export function firstDifference(one: unknown, other: unknown, path = ''): string | undefined {
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
