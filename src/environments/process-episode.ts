/**
 * One episode in an environment's process. The models that the environment asks for (user, judge) are called here, a
 * bounded number of times; an episode whose id the environment has given away twice is never scored.
 */
import { seedOf } from '../artifacts/hash';
import type { ModelUsage } from '../domain/endpoints';
import type { Episode, Evaluation, OnPartnerUsage, PartnerRole, StepResult } from '../domain/environment';
import type { AssistantMessage, Message, UserMessage } from '../domain/messages';
import type { Judge, SimulatedUser } from '../partners/partners';
import type { Connection } from './connection';
import { badEnvironment, checkAnswers, EnvironmentError, quoted } from './contract';
import type { Method, Params, Result } from './protocol';

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

export async function beginEpisode({
  connection,
  task,
  user,
  judge,
  signal,
  onUsage,
  onClose,
}: Opening): Promise<Episode> {
  const { name, episodes } = connection;
  const begun = await connection.request('reset', { task });
  const { episode, user: firstWords, userTools = [], ...start } = begun;
  const bad = (method: Method, problem: string, fix: string) => badEnvironment(name, method, problem, fix);
  const sharedId = () => {
    const problem = `episode: "${quoted(episode, 60)}" is the id of an episode that is still open`;
    return bad('reset', problem, 'give every episode an id of its own');
  };
  const other = episodes.get(episode);
  if (other) {
    other.shared = true;
    throw sharedId();
  }
  const own = { shared: false };
  episodes.set(episode, own);

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

  async function close(): Promise<void> {
    episodes.delete(episode);
    await connection.request('close', { episode });
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
      // All are waited for: each is paid for, also where another one fails.
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
