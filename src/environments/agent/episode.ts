/**
 * Plays one rollout of an agent's program. Invariant: a program that ends without a request, does not end by itself, or sends a request that is answered with
 * an error is the environment's failure and has no reward. Parallel requests are answered one after the other.
 */
import { execFile } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { mkdtemp, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { orAborted } from '../../domain/concurrency';
import type { Episode, Evaluation, Sampled, StopReason } from '../../domain/environment';
import { OutsideFailure, reasonOf } from '../../domain/failures';
import type { AssistantMessage } from '../../domain/messages';
import { GatewayError } from '../../gateway/errors';
import { quoted } from '../protocol';
import { type Asked, type Endpoint, KEY, MODEL } from './endpoint';
import { type Run, run } from './program';
import { rewardIn } from './reward';

export interface AgentProgram {
  command: readonly string[];
  grader?: readonly string[] | undefined;
  passEnv?: readonly string[] | undefined;
  /** Tools that change nothing; requests in OpenAI's form can't say it. */
  readOnlyTools: readonly string[];
  maxSteps: number;
  /** Limit of the time between an answer and the next request, or the end. */
  silenceSeconds: number;
}

/** The beginning of the name of every rollout's working folder. */
export const AGENT_FOLDER = 'campaign-agent-';
const OUTPUT = 2000;
const GONE = new GatewayError(400, 'the client no longer waits for the answer');

/** A shell reports the signal that ended its command as 128 and the signal's number; 255 is a program's own -1. */
const byOwnWill = (how: string | undefined): boolean => {
  const code = /^exit code (\d+)$/.exec(how ?? '')?.[1];
  return code !== undefined && (Number(code) <= 128 || code === '255');
};

/** Starts the program; resolves once it has asked the model. */
export async function beginAgent(o: {
  program: AgentProgram;
  endpoint: Endpoint;
  /** The task's line in the file. */
  task: { id: string };
  seed: number;
  signal?: AbortSignal | undefined;
}): Promise<Episode> {
  const { program, endpoint, task, seed, signal } = o;
  const { command, grader, passEnv, readOnlyTools, maxSteps, silenceSeconds } = program;
  const silenceMs = silenceSeconds * 1000;
  const url = await endpoint.url();
  const folder = await mkdtemp(join(tmpdir(), AGENT_FOLDER));
  const key = `${KEY}${randomUUID()}`;
  const agentText = `agent program "${quoted(command.join(' '), 200)}"`;
  const input = JSON.stringify(task);
  const ofTask = { CAMPAIGN_TASK_ID: task.id, CAMPAIGN_SEED: String(seed) };
  const start = (command: readonly string[], more: Record<string, string> = {}): Run =>
    run({ command, folder, passEnv, input, variables: { ...ofTask, ...more } });

  const waiting: Asked[] = [];
  let current: Asked | undefined;
  /** Answers whose clients disconnected. A program that repeats the request gets them. */
  const unheard: { asked: Asked; message: AssistantMessage; sampled: Sampled }[] = [];
  let onChange = (): void => undefined;
  let over: GatewayError | undefined;

  let refused: OutsideFailure | undefined;

  const forget = endpoint.expect(key, {
    onAsked(asked) {
      if (over) return asked.refuse(over);
      if (asked.isGone()) return asked.refuse(GONE);
      const lost = unheard.findIndex((one) => one.asked.digest === asked.digest);
      if (lost >= 0) {
        const [{ message, sampled }] = unheard.splice(lost, 1) as [(typeof unheard)[0]];
        return asked.answer(message, sampled);
      }
      waiting.push(asked);
      onChange();
    },
    // A program that catches the error could end with a reward for a request that the policy never got.
    onError({ status, message }, request) {
      if (over) return;
      refused ??= new OutsideFailure(
        'BadEnvironment',
        `${agentText} sent ${request}, which was answered with ${status}: ${quoted(message, 500)}; correct what it sends (docs/agents.md)`,
      );
      onChange();
    },
  });

  const playing = start(command, {
    OPENAI_BASE_URL: `${url}/v1`,
    OPENAI_API_KEY: key,
    OPENAI_MODEL: MODEL,
  });
  let grading: Run | undefined;
  let how: string | undefined;
  playing.ended.then(
    (ending) => {
      how = ending;
      onChange();
    },
    () => onChange(),
  );

  function failed(problem: string, fix: string): OutsideFailure {
    const words = [playing.stderr(), playing.stdout()].filter(Boolean).join('\n').slice(-OUTPUT);
    const last = words && `; its last words:\n${words}`;
    return new OutsideFailure('EnvironmentFailed', `${agentText} ${problem}; ${fix}${last}`);
  }

  /** Returns the next request; undefined at the program's end. */
  async function next(): Promise<Asked | undefined> {
    let timer: NodeJS.Timeout | undefined;
    const silent = new Promise<never>((_, reject) => {
      timer = setTimeout(() => {
        playing.kill();
        const problem = `has asked nothing and not ended for ${silenceSeconds} s and was killed`;
        reject(failed(problem, 'find out what it waits for, or allow it more (target.silenceSeconds)'));
      }, silenceMs);
    });
    try {
      for (;;) {
        if (refused) throw refused;
        // The program has ended, so no request can be answered.
        if (how !== undefined) return undefined;
        const asked = waiting.shift();
        if (asked && !asked.isGone()) return asked;
        if (asked) {
          asked.refuse(GONE);
          continue;
        }
        const changed = new Promise<void>((resolve) => (onChange = resolve));
        await orAborted(Promise.race([changed, silent, playing.ended]), signal);
      }
    } finally {
      clearTimeout(timer);
    }
  }

  const contextOf = ({ context: { messages, tools } }: Asked) => ({
    messages,
    tools: tools.map((tool) =>
      readOnlyTools.includes(tool.name) ? { ...tool, annotations: { readOnlyHint: true } } : tool,
    ),
  });

  /** Refuses further requests and waits for the program to end by itself. */
  async function ended(reason: StopReason): Promise<void> {
    if (how === undefined) {
      over = new GatewayError(400, `the rollout is over: ${reason}`, {
        code: reason === 'context_length' ? 'context_length_exceeded' : reason,
      });
      for (const asked of [current, ...waiting.splice(0)]) asked?.refuse(over);
      await next();
    }
  }

  async function readReward(): Promise<Evaluation> {
    if (!grader) return rewardIn(playing.stdout());
    const { ended, kill, stderr, stdout } = (grading = start(grader));
    const timer = setTimeout(kill, silenceMs);
    const end = await orAborted(ended, signal).finally(() => clearTimeout(timer));
    if (end !== 'exit code 0') throw new Error(`the grader ended with ${end}: ${stderr()}`);
    return rewardIn(stdout());
  }

  async function close(): Promise<void> {
    forget();
    over ??= new GatewayError(400, 'the rollout is over');
    for (const asked of [current, ...waiting.splice(0)]) asked?.refuse(over);
    for (const one of [playing, grading]) {
      one?.kill();
      await one?.ended.catch(() => undefined);
    }
    // Node's own function stops where a path is longer than the system takes.
    await promisify(execFile)('rm', ['-rf', folder]);
  }

  try {
    await writeFile(join(folder, 'task.json'), input);
    current = await next();
    if (!current) {
      const fix = 'it has to ask OPENAI_BASE_URL with OPENAI_API_KEY';
      throw failed(`ended with ${how} and has never asked the model`, fix);
    }
  } catch (error) {
    await close();
    throw error;
  }
  return {
    start: { ...contextOf(current), maxSteps },
    async step(message, sampled = { finishReason: 'stop', promptTokens: 0, completionTokens: 0 }) {
      if (how !== undefined) return { messages: [], done: true, stopReason: 'agent_stop', unheard: true };
      if (current?.isGone()) unheard.push({ asked: current, message, sampled });
      current?.answer(message, sampled);
      current = undefined;
      current = await next();
      if (!current) return { messages: [], done: true, stopReason: 'agent_stop' };
      return { messages: [], done: false, context: contextOf(current) };
    },
    async evaluate(reason) {
      if (refused) throw refused;
      const byItself = how !== undefined;
      await ended(reason);
      const output = playing.stdout().slice(-OUTPUT);
      const kept = output === '' ? {} : { output };
      if (how !== 'exit code 0') {
        if (byItself || !byOwnWill(how))
          throw failed(`ended with ${how}`, 'it has to end with exit code 0, whatever the model says');
        // A reward that it printed before it failed at the refusal does not count.
        if (!grader) return { reward: 0, breakdown: {}, ...kept };
      }
      try {
        return { ...(await readReward()), ...kept };
      } catch (error) {
        // Its last request was not answered because the policy had reached a limit.
        if (!byItself && !grader) return { reward: 0, breakdown: {}, ...kept };
        throw failed(`has printed no reward: ${reasonOf(error)}`, 'it has to print one in [0, 1]');
      }
    },
    close,
  };
}
