/**
 * One episode in an environment's process. The models that the environment asks for (user, judge) are called here, a
 * bounded number of times; an episode whose id the environment has given away twice is never scored.
 */
import { seedOf } from '../artifacts/hash';
import type { ModelUsage } from '../domain/endpoints';
import type { Episode, Evaluation, OnPartnerUsage, PartnerRole, StepResult } from '../domain/environment';
import type { AssistantMessage, Message, ToolCall, UserMessage } from '../domain/messages';
import type { Judge, SimulatedUser } from '../partners/partners';
import { type Connection, EnvironmentError, quoted } from './connection';
import type { Method, Params, Result } from './protocol';

/** Of an id: who holds it. `shared`: the environment has begun another episode under it. */
export interface Held {
  shared: boolean;
}

interface Opening {
  run: Connection;
  begun: Result<'reset'>;
  held: Held;
  seed: number;
  user: SimulatedUser | undefined;
  judge: Judge | undefined;
  signal: AbortSignal | undefined;
  onUsage: OnPartnerUsage | undefined;
  closed: () => void;
}

/** Turns of the simulated user between two of the agent's. tau2-bench ends a whole conversation after 200 turns. */
const MAX_USER_TURNS = 100;

const badEnvironment = (environment: string, method: Method, problem: string, fix: string) =>
  new EnvironmentError('BadEnvironment', { environment, method, problem, fix });

export const sharedId = ({ name }: Connection, episode: string) =>
  badEnvironment(
    name,
    'reset',
    `episode: "${quoted(episode, 60)}" is the id of an episode that is still open`,
    'give every episode an id of its own',
  );

const lacking = ({ name: environment }: Connection, method: 'step' | 'evaluate', lacks: 'user' | 'judge') => {
  const problem = `${lacks}: it asks for a ${lacks === 'user' ? 'simulated user' : lacks}, and target.${lacks} names none`;
  const fix = 'add it to the campaign file';
  return new EnvironmentError('BadEnvironment', { environment, method, problem, fix, lacks });
};

export async function openEpisode(opening: Opening): Promise<Episode> {
  const { run, begun, held, seed, user, judge, signal, onUsage, closed } = opening;
  const { episode, user: unheard, userTools = [], ...start } = begun;
  const heard: Message[] = [];
  let turn = 0;
  const outside = (role: PartnerRole) => ({
    ...(signal && { signal }),
    onUsage: (usage: ModelUsage) => onUsage?.(role, usage),
  });

  function request<M extends Exclude<Method, 'describe' | 'tasks' | 'reset'>>(
    method: M,
    params: Omit<Params<M>, 'episode'>,
  ): Promise<Result<M>> {
    if (held.shared) throw sharedId(run, episode);
    return run.request(method, { episode, ...params } as unknown as Params<M>);
  }

  async function answerTo(message: AssistantMessage | UserMessage): Promise<Result<'step'>> {
    const result = await request('step', { message });
    const problem = answersProblem({
      calls: message.toolCalls,
      messages: result.messages,
      done: result.done,
      requestor: message.role === 'user' ? 'user' : 'agent',
    });
    if (problem !== undefined) throw badEnvironment(run.name, 'step', problem, ANSWERS_FIX);
    return result;
  }

  async function spoken(): Promise<UserMessage> {
    if (!user) throw lacking(run, 'step', 'user');
    const turnSeed = seedOf(`user ${seed}/${turn++}`);
    return user.speak({ messages: heard, tools: userTools, seed: turnSeed, ...outside('user') });
  }

  /** Lets the user speak, and use its tools, until it is the agent's turn again or the episode is over. */
  async function untilAgent(
    method: 'reset' | 'step',
    { user: toHear, ...result }: Result<'step'>,
  ): Promise<StepResult> {
    const messages = [...result.messages];
    let [next, last]: [Message[] | undefined, StepResult] = [toHear, result];
    for (let turns = 0; next && !last.done; turns++) {
      if (turns === MAX_USER_TURNS) {
        const problem = `user: the simulated user is asked more than ${MAX_USER_TURNS} times before it is the agent's turn`;
        throw badEnvironment(run.name, method, problem, 'give the agent the turn (leave user out), or end the episode');
      }
      heard.push(...next);
      const said = await spoken();
      const { content, toolCalls } = said;
      heard.push({ role: 'assistant', content, ...(toolCalls && { toolCalls }) });
      const { user: more, ...answered } = await answerTo(said);
      messages.push(said, ...answered.messages);
      [next, last] = [more, answered];
    }
    return { ...last, messages };
  }

  const opened = await untilAgent('reset', { messages: [], done: false, ...(unheard && { user: unheard }) });
  if (opened.done) {
    const problem = 'the simulated user ended the conversation before the agent had a turn';
    const fix = 'look at the instructions that the environment gives it, or take another model for target.user';
    throw new EnvironmentError('UserSimulatorFailed', { environment: run.name, method: 'reset', problem, fix });
  }
  return {
    start: { ...start, messages: [...start.messages, ...opened.messages] },
    step: async (message: AssistantMessage) => untilAgent('step', await answerTo(message)),
    async evaluate(reason): Promise<Evaluation> {
      const first = await request('evaluate', { reason });
      if (!('judge' in first)) return first;
      if (!judge) throw lacking(run, 'evaluate', 'judge');
      const answers = await Promise.allSettled(first.judge.map((question) => judge.answer(question, outside('judge'))));
      // All are waited for: each is paid for, also where another one fails.
      const judgements = answers.map((answer) => {
        if (answer.status === 'rejected') throw answer.reason;
        return answer.value;
      });
      const second = await request('evaluate', { reason, judgements });
      if (!('judge' in second)) return second;
      const fix = 'answer with the reward once `judgements` are there';
      throw badEnvironment(run.name, 'evaluate', 'judge: it asks the judge a second time', fix);
    },
    async close() {
      closed();
      await run.request('close', { episode });
    },
  };
}

export const ANSWERS_FIX =
  'answer each call with one tool message that has its id, in the order of the calls, where the call fails too ("error : ...")';

/** What is wrong with the answers to one message, beginning with the field; undefined where nothing is. */
export function answersProblem(o: {
  /** Of the agent's message, or of the simulated user's. */
  calls: readonly ToolCall[] | undefined;
  messages: readonly Message[];
  /** An episode may end before all calls are run. */
  done: boolean;
  requestor: 'agent' | 'user';
}): string | undefined {
  const expected = (o.calls ?? []).map(({ id }) => id);
  let answered = 0;
  for (const [n, message] of o.messages.entries()) {
    if (message.role !== 'tool') continue;
    const field = `messages.${n}.toolCallId: "${quoted(message.toolCallId, 60)}"`;
    if ((message.requestor === 'user') !== (o.requestor === 'user')) {
      const wanted = o.requestor === 'user' ? 'must have requestor "user"' : 'must have no requestor';
      return `${field} answers a call of the ${o.requestor}'s and ${wanted}`;
    }
    if (!expected.includes(message.toolCallId)) return `${field} answers no call of the message`;
    if (message.toolCallId !== expected[answered])
      return `${field} comes where ${expected[answered] ?? 'no further answer'} should`;
    answered++;
  }
  if (o.done || answered === expected.length) return undefined;
  return `messages: call ${expected[answered]} has no answer`;
}
