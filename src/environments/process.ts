/**
 * Runs programs that speak the environment protocol as environments, and defines the kinds of such programs. An episode ends with the process that it began
 * in; the next reset starts the process again. The models that it asks for (user, judge) are called here, a bounded number of times. An episode whose id
 * the program has used twice is never scored.
 */
import { z } from 'zod';
import { chatModelSchema, silenceField, variableName, type ModelUsage } from '../domain/endpoints';
import type {
  Environment,
  EnvironmentDescription,
  Episode,
  Evaluation,
  OnPartnerUsage,
  PartnerRole,
  StepResult,
} from '../domain/environment';
import { defineKind, type KindSpec } from '../domain/kinds';
import { openPartners, type Partners, type Judge, type SimulatedUser } from '../llm/partners';
import { connect, type Connection, type ProcessCommand, SILENCE_SECONDS } from './connection';
import { checkAllowed, type EnvironmentContext, type EnvironmentKind } from './kinds';
import { seedOf } from '../store/hash';
import type { AssistantMessage, Message, UserMessage } from '../domain/messages';
import {
  badEnvironment,
  checkAnswers,
  EnvironmentError,
  quoted,
  type Method,
  type Params,
  type Result,
} from './protocol';

/** Options of an environment's processes, and the models that play the other parties of an episode, which are never trained. */
export const processOptions = {
  processes: z.number().int().positive().default(1).describe('Parallel processes.'),
  silenceSeconds: silenceField.default(SILENCE_SECONDS).describe('Seconds of silence until a restart.'),
  passEnv: z.array(variableName).optional().describe('Environment variables passed to it.'),
  user: chatModelSchema.optional().describe('Model that plays the user.'),
  judge: chatModelSchema.optional().describe('Model that judges.'),
};
const processSchema = z.object(processOptions);

/** A kind of environments that run as a program; its options are its own and those of `processOptions`. */
export function programKind<Shape extends z.ZodRawShape>(o: {
  kind: string;
  options: Shape;
  paths: readonly (keyof Shape & string)[];
  runs: readonly (keyof Shape & string)[];
  program(options: z.infer<z.ZodObject<Shape>>): ProcessCommand;
}) {
  const { kind, options, paths, runs, program } = o;
  const definition = defineKind({
    kind,
    version: '1',
    options,
    paths,
    open: (read, _identity, { partners }: EnvironmentContext) => {
      const { processes, silenceSeconds, passEnv, ...models } = processSchema.parse(read);
      const command = program(read);
      checkAllowed(kind, read, runs);
      return openProcessEnvironment({
        ...command,
        passEnv,
        processes,
        silenceMs: silenceSeconds * 1000,
        ...(partners ?? openPartners(models)),
      });
    },
  });
  return { ...definition, runs, partners: (spec: KindSpec) => processSchema.parse(spec) };
}

export const processKind: EnvironmentKind = programKind({
  kind: 'process',
  options: {
    command: z.array(z.string()).min(1).describe('Program and arguments.'),
    cwd: z.string().default('.').describe('Working directory.'),
    ...processOptions,
  },
  paths: ['cwd'],
  runs: ['command', 'cwd'],
  program: ({ command, cwd }) => ({ command, cwd }),
});

export interface ProcessEnvironmentOptions extends ProcessCommand, Partners {
  /** Parallel processes; an episode goes to the one with the fewest. */
  processes?: number;
  /** Milliseconds without an episode or a request after which a process is closed. */
  idleMs?: number;
}

/** A worker outlives its campaigns. Their processes end this long after their last step; a longer pause within a campaign starts them again. */
const IDLE_MS = 2 * 60_000;

interface Slot {
  connection?: Connection;
  episodes: number;
  idle?: NodeJS.Timeout;
}

/** Starts each process on its first request, and again after it was idle. Any number of episodes may be open at once. */
export function openProcessEnvironment({
  user,
  judge,
  processes = 1,
  idleMs = IDLE_MS,
  ...command
}: ProcessEnvironmentOptions): Environment {
  const slots = Array.from({ length: processes }, (): Slot => ({ episodes: 0 }));

  function take(): Slot {
    const slot = slots.reduce((least, one) => (one.episodes < least.episodes ? one : least));
    clearTimeout(slot.idle);
    slot.episodes++;
    return slot;
  }

  function release(slot: Slot): void {
    if (--slot.episodes > 0) return;
    slot.idle = setTimeout(() => {
      void slot.connection?.close();
      delete slot.connection;
    }, idleMs).unref();
  }

  const connectionOf = (slot: Slot): Connection =>
    slot.connection && !slot.connection.failure ? slot.connection : (slot.connection = connect(command));

  async function withConnection<R>(work: (connection: Connection) => Promise<R>): Promise<R> {
    const slot = take();
    try {
      return await work(connectionOf(slot));
    } finally {
      release(slot);
    }
  }

  /** Shows the simulated user's instructions instead of its words, so that no model is asked and paid. */
  const lookAtTask = (task: { id: string; seed: number }): Promise<object> =>
    withConnection(async (connection) => {
      const { close, start, user, userTools } = await openEpisode(connection, task);
      await close();
      return { ...start, user, userTools };
    });

  return {
    appearance: { task: lookAtTask },
    async describe(): Promise<EnvironmentDescription> {
      const description = await withConnection((connection) => connection.request('describe', {}));
      const version = [description.version, user && `user ${user.id}`, judge && `judge ${judge.id}`].filter(Boolean);
      return { ...description, version: version.join('; ') };
    },
    tasks: async (split) => (await withConnection((connection) => connection.request('tasks', { split }))).tasks,
    async reset(task, signal, onUsage): Promise<Episode> {
      const slot = take();
      let isOpen = true;
      const onClose = () => {
        if (isOpen) release(slot);
        isOpen = false;
      };
      try {
        const connection = connectionOf(slot);
        return await beginEpisode({ connection, task, user, judge, signal, onUsage, onClose });
      } catch (error) {
        onClose();
        throw error;
      }
    },
    reachable: async () => (await Promise.all([user, judge].map((one) => one?.reachable?.() ?? true))).every(Boolean),
    async close() {
      for (const { idle } of slots) clearTimeout(idle);
      await Promise.all(slots.map(({ connection }) => connection?.close()));
      for (const slot of slots) delete slot.connection;
    },
  };
}

interface Opening {
  connection: Connection;
  task: { id: string; seed: number };
  signal: AbortSignal | undefined;
  onUsage: OnPartnerUsage | undefined;
  user: SimulatedUser | undefined;
  judge: Judge | undefined;
  onClose: () => void;
}

/** Turns of the simulated user between two of the agent's. tau2-bench ends a whole conversation after 200 turns. */
const MAX_USER_TURNS = 100;

/** Resets a task. Throws BadEnvironment where the episode's id is one that is still open. */
async function openEpisode(connection: Connection, task: Opening['task']) {
  const { name, episodes } = connection;
  const { episode, user, userTools, ...start } = await connection.request('reset', { task });
  const sharedId = () => {
    const problem = `episode: "${quoted(episode, 60)}" is the id of an episode that is still open`;
    return badEnvironment(name, 'reset', problem, 'give every episode an id of its own');
  };
  const other = episodes.get(episode);
  if (other) {
    other.shared = true;
    throw sharedId();
  }
  const own = { shared: false };
  episodes.set(episode, own);
  async function close(): Promise<void> {
    episodes.delete(episode);
    await connection.request('close', { episode });
  }
  return { episode, start, user, userTools, own, sharedId, close };
}

async function beginEpisode({ connection, task, user, judge, signal, onUsage, onClose }: Opening): Promise<Episode> {
  const { name } = connection;
  const opened = await openEpisode(connection, task);
  const { episode, start, user: firstWords, userTools = [], own, sharedId, close } = opened;
  const bad = (method: Method, problem: string, fix: string) => badEnvironment(name, method, problem, fix);
  const heard: Message[] = [];
  let turn = 0;
  const outside = (role: PartnerRole) => ({
    ...(signal && { signal }),
    onUsage: (usage: ModelUsage) => onUsage?.(role, usage),
  });
  const lacking = (method: Method, lacks: PartnerRole) => {
    const problem = `${lacks}: it asks for a ${lacks === 'user' ? 'simulated user' : lacks}, and target.${lacks} names none`;
    const fix = 'add it to the campaign file';
    return new EnvironmentError('BadEnvironment', { environment: name, method, problem, fix, lacks });
  };

  async function request<M extends 'step' | 'evaluate'>(
    method: M,
    params: Omit<Params<M>, 'episode'>,
  ): Promise<Result<M>> {
    if (own.shared) throw sharedId();
    return connection.request(method, { episode, ...params } as unknown as Params<M>);
  }

  async function answerTo(message: AssistantMessage | UserMessage): Promise<Result<'step'>> {
    const result = await request('step', { message });
    checkAnswers(name, message, result);
    return result;
  }

  /** Lets the user speak, and use its tools, until it is the agent's turn again or the episode is over. */
  async function untilAgent(method: 'reset' | 'step', { user: words, ...first }: Result<'step'>): Promise<StepResult> {
    const messages = [...first.messages];
    let last: StepResult = first;
    for (let turns = 0; words && !last.done; turns++) {
      if (!user) throw lacking('step', 'user');
      if (turns === MAX_USER_TURNS) {
        const problem = `user: the simulated user is asked more than ${MAX_USER_TURNS} times before it is the agent's turn`;
        throw bad(method, problem, 'give the agent the turn (leave user out), or end the episode');
      }
      heard.push(...words);
      const seed = seedOf(`user ${task.seed}/${turn++}`);
      const said = await user.speak({ messages: heard, tools: userTools, seed, ...outside('user') });
      const { content, toolCalls } = said;
      heard.push({ role: 'assistant', content, ...(toolCalls && { toolCalls }) });
      ({ user: words, ...last } = await answerTo(said));
      messages.push(said, ...last.messages);
    }
    return { ...last, messages };
  }

  async function opening(): Promise<Message[]> {
    if (!firstWords) return [];
    const { messages, done } = await untilAgent('reset', { messages: [], done: false, user: firstWords });
    if (!done) return messages;
    const problem = 'the simulated user ended the conversation before the agent had a turn';
    const fix = 'look at the instructions that the environment gives it, or take another model for target.user';
    throw new EnvironmentError('UserSimulatorFailed', { environment: name, method: 'reset', problem, fix });
  }

  try {
    start.messages.push(...(await opening()));
  } catch (error) {
    await close().catch(() => undefined);
    throw error;
  }
  return {
    start,
    step: async (message) => untilAgent('step', await answerTo(message)),
    async evaluate(reason): Promise<Evaluation> {
      const first = await request('evaluate', { reason });
      if (!('judge' in first)) return first;
      if (!judge) throw lacking('evaluate', 'judge');
      // Waits for all answers, because each is paid for even if another one fails.
      const answers = await Promise.allSettled(first.judge.map((question) => judge.answer(question, outside('judge'))));
      const judgements = answers.map((answer) => {
        if (answer.status === 'rejected') throw answer.reason;
        return answer.value;
      });
      const second = await request('evaluate', { reason, judgements });
      if (!('judge' in second)) return second;
      const fix = 'answer with the reward once `judgements` are there';
      throw bad('evaluate', 'judge: it asks the judge a second time', fix);
    },
    close: () => {
      onClose();
      return close();
    },
  };
}
