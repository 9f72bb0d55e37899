/** `campaign check` of an agent: starts its program on three tasks, answers as any model might, and describes what it did. */
import type { Context, Environment, Episode, Sampled, Task } from '../../domain/environment';
import { reasonOf } from '../../domain/failures';
import type { ToolSchema } from '../../domain/messages';
import { type Finding, nearlyOne } from '../conformance';
import type { CheckRun } from '../kinds';
import { exampleArguments } from '../json-schema';
import { quoted } from '../protocol';

const TASKS = 3;
/** Requests that are answered before the rollout ends. */
const ANSWERED = 3;
const WORDS = 'I can not help with that.';

interface AgentCheck extends CheckRun {
  /** Closed after the check. */
  environment: Environment;
  say: (line: string) => void;
  /** Seconds without a request after which the program is killed. */
  silenceSeconds: number;
}

export async function checkAgent({ environment, silenceSeconds, say, signal }: AgentCheck): Promise<Finding[]> {
  try {
    const tasks = [...(await environment.tasks('train')), ...(await environment.tasks('test'))];
    for (const { id } of sampleOf(tasks)) {
      say(`task ${id}: started; it is killed after ${silenceSeconds} s without a request (target.silenceSeconds)`);
      try {
        const { text, reward } = await play(environment, id, signal);
        say(`task ${id}: ${text}, reward ${reward}`);
        const note = nearlyOne(reward);
        if (note) say(`note: ${note.join('; ')}`);
      } catch (error) {
        signal?.throwIfAborted();
        const fix = 'correct the program, then check it again';
        return [{ check: `task ${id}`, problem: reasonOf(error), fix }];
      }
    }
    return [];
  } finally {
    await environment.close();
  }
}

/** Returns the first, the middle and the last task. */
const sampleOf = (tasks: readonly Task[]): Task[] =>
  [...new Set(Array.from({ length: TASKS }, (_, n) => Math.floor((n * (tasks.length - 1)) / (TASKS - 1))))].map(
    (at) => tasks[at]!,
  );

async function play(environment: Environment, id: string, signal: AbortSignal | undefined) {
  const begun = performance.now();
  const episode = await environment.reset({ id, seed: 0 }, signal);
  try {
    const seconds = ((performance.now() - begun) / 1000).toFixed(1);
    const answers = await answer(episode);
    const isRefused = answers > ANSWERED;
    const { reward } = await episode.evaluate(isRefused ? 'max_steps' : 'agent_stop');
    const end = isRefused ? `was refused after ${ANSWERED} answers` : 'ended by itself';
    return { text: `asked after ${seconds} s, ${openingText(episode.start)}; ${answers} requests; ${end}`, reward };
  } finally {
    await episode.close();
  }
}

/** Answers up to ANSWERED requests, the first with a tool by a call of it, so that a call and its result are sent back. Returns the number of requests. */
async function answer(episode: Episode): Promise<number> {
  let { tools } = episode.start;
  let isCalled = false;
  for (let n = 1; n <= ANSWERED; n++) {
    const tool: ToolSchema | undefined = isCalled ? undefined : tools[0];
    isCalled ||= tool !== undefined;
    const message = tool
      ? { content: '', toolCalls: [{ id: 'call_0', name: tool.name, arguments: exampleArguments(tool.parameters) }] }
      : { content: WORDS };
    const finishReason = tool ? 'tool_calls' : 'stop';
    const sampled: Sampled = { finishReason, promptTokens: 0, completionTokens: 0 };
    const { done, context } = await episode.step({ role: 'assistant', ...message }, sampled);
    if (done) return n;
    tools = context?.tools ?? [];
  }
  return ANSWERED + 1;
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
