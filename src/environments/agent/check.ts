/** `campaign check` of an agent: starts its program on three tasks, answers as any model might, and describes what it did. */
import { existsSync, statSync } from 'node:fs';
import { isAbsolute, resolve } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import type { Context, Environment, Episode, ResetResult, Sampled, Task } from '../../domain/environment';
import { reasonOf } from '../../domain/failures';
import type { ToolCall, ToolSchema } from '../../domain/messages';
import { passedOf } from '../../gateway/request';
import { type Finding, nearlyOne } from '../conformance/probe';
import type { CheckRun } from '../kinds';
import { exampleOf } from '../json-schema';
import { isExecutable } from '../namespace';
import { quoted } from '../protocol';
import type { Asked } from './endpoint';

const TASKS = 3;
/** Requests that are answered before the rollout ends. */
const ANSWERED = 3;
const WORDS = 'I can not help with that.';

interface LostWord {
  /** The program itself. Any other word only looks like a file. */
  isProgram: boolean;
  text: string;
}

/** Neither an option, nor a text, nor a URL. */
const LIKE_A_FILE = /^(?!-)(?!.*(?:\s|:\/\/)).*(?:\/|\.(?:py|[cm]?[jt]s|sh|rb|pl)$)/s;

/** Returns words that look like a file and are none. The program runs in a folder of its own, so only absolute paths lead to files. */
export function lostWords(o: {
  command: readonly string[];
  grader?: readonly string[] | undefined;
  folder: string;
}): LostWord[] {
  const { command, grader = [], folder } = o;
  const isFound = (word: string) =>
    isAbsolute(word) ? existsSync(word) : isFile(resolve(folder, word)) || (!word.includes('/') && isExecutable(word));
  return Object.entries({ command, grader }).flatMap(([field, words]) =>
    words.flatMap((word, n) => {
      if ((n > 0 && !LIKE_A_FILE.test(word)) || isFound(word)) return [];
      const where = isAbsolute(word) ? '' : ` in target.folder ${folder}`;
      const command = word.includes('/') ? '' : ', and no command on the PATH';
      return [{ isProgram: n === 0, text: `target.${field}: ${word} is no file${where}${command}` }];
    }),
  );
}

export const isFile = (path: string): boolean => existsSync(path) && statSync(path).isFile();

export async function checkAgent(
  o: CheckRun & {
    open: (onAsked: (asked: Asked) => void) => Environment;
    say: (line: string) => void;
    lost: readonly LostWord[];
    /** Seconds without a request after which the program is killed. */
    silenceSeconds: number;
  },
): Promise<Finding[]> {
  const { open, lost, silenceSeconds, say, signal } = o;
  const findings: Finding[] = [];
  let asked: Asked[] = [];
  const environment = open((one) => void asked.push(one));
  try {
    const tasks = [...(await environment.tasks('train')), ...(await environment.tasks('test'))];
    for (const split of ['train', 'test'] as const)
      if (!tasks.some((task) => task.split === split))
        findings.push({
          check: 'tasks',
          problem: `no task has split "${split}"`,
          fix: 'give some of the lines of target.tasks that split',
        });
    const [first] = tasks;
    if (!first) return findings;
    const starts: ResetResult[] = [];
    const sample = sampleOf(tasks);
    for (const { text } of lost) say(`note: ${text}`);
    for (const task of [...sample, first]) {
      asked = [];
      const isAgain = starts.length === sample.length;
      say(
        `task ${task.id}: started${isAgain ? ' once more' : ''}; it is killed after ${silenceSeconds} s without a request (target.silenceSeconds)`,
      );
      try {
        const { start, text, note } = await played(environment, task, { asked: () => asked, calls: isAgain, signal });
        if (starts.push(start) <= sample.length) for (const line of note ? [text, `note: ${note}`] : [text]) say(line);
      } catch (error) {
        signal?.throwIfAborted();
        findings.push({
          check: `task ${task.id}`,
          problem: reasonOf(error),
          fix: 'correct the program, then check it again',
        });
        return findings;
      }
    }
    if (!isDeepStrictEqual(starts[0], starts.at(-1)))
      say('note: on the same task it asks for something else each time: is there a time, or an id, in its prompt?');
    return findings;
  } finally {
    await environment.close();
  }
}

/** Returns the first, the middle and the last task. */
const sampleOf = (tasks: readonly Task[]): Task[] =>
  [...new Set(Array.from({ length: TASKS }, (_, n) => Math.floor((n * (tasks.length - 1)) / (TASKS - 1))))].map(
    (at) => tasks[at]!,
  );

async function played(
  environment: Environment,
  { id }: Task,
  o: { asked: () => readonly Asked[]; calls: boolean; signal: AbortSignal | undefined },
) {
  const { asked, calls, signal } = o;
  const begun = performance.now();
  const episode = await environment.reset({ id, seed: 0 }, signal);
  try {
    const seconds = ((performance.now() - begun) / 1000).toFixed(1);
    const byItself = await answered(episode, calls);
    const { reward } = await episode.evaluate(byItself ? 'agent_stop' : 'max_steps');
    const end = byItself ? 'ended by itself' : `was refused after ${ANSWERED} answers`;
    const text = `task ${id}: asked after ${seconds} s, ${openingText(episode.start)}; ${requestsText(asked())}; ${end}, reward ${reward}`;
    return { start: episode.start, text, note: nearlyOne(reward)?.join('; ') };
  } finally {
    await episode.close();
  }
}

/** `calls`: the first tool is called once, so that the program sends a call and its result back. */
async function answered(episode: Episode, calls: boolean): Promise<boolean> {
  let [tool] = calls ? episode.start.tools : [];
  let isCalled = !calls;
  for (let n = 0; n < ANSWERED; n++) {
    const message = tool ? { content: '', toolCalls: [callOf(tool)] } : { content: WORDS };
    isCalled ||= tool !== undefined;
    const finishReason = tool ? 'tool_calls' : 'stop';
    const sampled: Sampled = { finishReason, promptTokens: 0, completionTokens: 0 };
    const { done, context } = await episode.step({ role: 'assistant', ...message }, sampled);
    if (done) return true;
    [tool] = isCalled ? [] : (context?.tools ?? []);
  }
  return false;
}

function callOf({ name, parameters }: ToolSchema): ToolCall {
  const given = exampleOf(parameters);
  const isObject = typeof given === 'object' && given !== null && !Array.isArray(given);
  return { id: 'call_0', name, arguments: isObject ? (given as ToolCall['arguments']) : {} };
}

function openingText({ messages, tools }: Context): string {
  const system = messages.find(({ role }) => role === 'system')?.content;
  const names = tools.map(({ name }) => name).join(', ');
  return [
    system === undefined ? 'no system message' : `a system message of ${system.length} characters`,
    names === '' ? 'no tools' : `tools ${names}`,
    `first words ${JSON.stringify(quoted(messages.find(({ role }) => role === 'user')?.content ?? '', 80))}`,
  ].join(', ');
}

function requestsText(asked: readonly Asked[]): string {
  const replaced = new Set(asked.flatMap(({ request }) => replacedIn(passedOf(request))));
  const streamed = asked.filter(({ request }) => request.stream).length;
  return [
    asked.length === 1 ? '1 request' : `${asked.length} requests`,
    ...(streamed > 0 ? [`${streamed} of them streamed`] : []),
    ...(replaced.size > 0 ? [`${[...replaced].join(', ')} asked for, which the campaign's sampling replaces`] : []),
  ].join(', ');
}

const replacedIn = (passed: Record<string, unknown>): string[] =>
  Object.entries(passed).flatMap(([name, value]) =>
    value === undefined || value === null || value === false || value === 'auto' || name === 'parallel_tool_calls'
      ? []
      : [name],
  );
