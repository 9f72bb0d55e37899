/** Playing an episode by a script. Invariant: every episode that is begun here is closed here. */
import type { Environment, Episode, Evaluation, StepResult, StopReason } from '../../domain/environment';
import type { AssistantMessage } from '../../domain/messages';
import { EnvironmentTrouble } from '../trouble';

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
    if (error instanceof EnvironmentTrouble && error.parts.lacks === 'judge') return undefined;
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
