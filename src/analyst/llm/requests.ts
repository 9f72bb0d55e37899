/**
 * The requests of the analyst that asks a language model: their content, and the tokens that are left for it. The parts that all requests share come
 * first, byte for byte.
 */
import { forEachBounded } from '../../domain/concurrency';
import { tokensOf } from '../../domain/endpoints';
import type { EnvironmentDescription } from '../../domain/environment';
import { badInput } from '../../domain/failures';
import { escapeLineBreaks, plainLine } from '../../domain/plain-text';
import { isSuccess, type ScoredRollout } from '../../domain/rollout';
import { byTask, compactOne, type Lengths, shortIds } from '../../domain/transcript';
import { answerOf, type Read, renderPrompt } from '../../llm/answer';
import type { ChatMessage, LanguageModel } from '../../llm/model';
import type { DiscoverInput, LabelInput } from '../analyst';
import { contrastChunks, type Shown } from './chunks';

/** The analyst's options, opened. */
export interface Config {
  model: LanguageModel;
  contextTokens: number;
  maxTokens: number;
  concurrency: number;
  chunkTokens: number;
  labelsPerChunk: number;
  lengths: Lengths;
  repairs: number;
}

/** Sorts rollouts by task and attempt and gives them short ids. */
export function shownOf(rollouts: readonly ScoredRollout[]): Shown {
  const ids = shortIds(rollouts);
  return new Map([...rollouts].sort(byTask).map((rollout) => [ids.get(rollout.key) ?? rollout.key, rollout]));
}

export const trajectoriesText = (shown: Shown, lengths: Lengths): string =>
  [...shown].map(([id, rollout]) => compactOne({ rollout, id, lengths })).join('\n\n');

/** Replaces the ids in a model's text by readable names: `r14.16` becomes message 16 of a task and attempt, or only its number if `own` is `r14`. */
export const readable = (text: string, shown: Shown, own?: string): string =>
  text.replace(/\b(r\d+)(?:\.(\d+))?\b/g, (written, id: string, message?: string) => {
    const rollout = shown.get(id);
    if (!rollout) return written;
    const trajectory = `task ${plainLine(rollout.task)}, attempt ${rollout.attempt}`;
    if (message === undefined) return trajectory;
    return id === own ? `message ${message}` : `message ${message} of ${trajectory}`;
  });

/** A request about trajectories: its prompt, the values that all requests share, and the lists of ids of the shown trajectories. */
export interface Request {
  prompt: string;
  values: Record<string, string>;
  lists: (shown: Shown) => Record<string, readonly string[]>;
}

const targetText = ({ policy, tools }: Pick<EnvironmentDescription, 'policy' | 'tools'>) => ({
  policy: policy.trim() || '(none is written down)',
  tools:
    tools
      .map(({ name, description, parameters, annotations }) => {
        const reads = annotations?.readOnlyHint ? ' (changes nothing)' : '';
        return `${plainLine(name)}${reads}: ${description}\n  parameters: ${escapeLineBreaks(JSON.stringify(parameters))}`;
      })
      .join('\n') || '(none)',
});

export function discoveryRequest({ description, rule }: Pick<DiscoverInput, 'description' | 'rule'>): Request {
  const idsOf = (shown: Shown, passed: boolean) =>
    [...shown].flatMap(([id, rollout]) => (isSuccess(rollout) === passed ? [id] : []));
  return {
    prompt: 'discover',
    values: { ...targetText(description), maxCandidates: String(rule.maxCandidates) },
    lists: (shown) => ({ failed: idsOf(shown, false), passed: idsOf(shown, true) }),
  };
}

export function labelRequest(o: {
  description: EnvironmentDescription;
  candidates: readonly Pick<LabelInput['candidates'][number], 'name' | 'definition'>[];
}): Request {
  const capabilities = o.candidates.map(({ name, definition }) => `- ${name}: ${plainLine(definition)}`).join('\n');
  return {
    prompt: 'label',
    values: { ...targetText(o.description), capabilities },
    lists: (shown) => ({ ids: [...shown.keys()] }),
  };
}

export function promptOf(config: Config, { prompt, values, lists }: Request, shown: Shown): ChatMessage[] {
  const ids = Object.entries(lists(shown)).map(([name, list]) => [name, list.join(', ') || 'none']);
  const trajectories = trajectoriesText(shown, config.lengths);
  return renderPrompt(prompt, { ...values, ...Object.fromEntries(ids), trajectories });
}

/** The chunks that discovery shows. Those without a failure are left out: there is nothing to be found in them. */
export const discoveryChunks = (config: Config, request: Request, shown: Shown): Shown[] =>
  chunksOf(config, request, shown).filter((chunk) => ![...chunk.values()].every(isSuccess));

export const labelChunks = (config: Config, request: Request, shown: Shown): Shown[] =>
  chunksOf(config, request, shown).flatMap((chunk) => {
    const [all, most] = [[...chunk], config.labelsPerChunk];
    return Array.from({ length: Math.ceil(all.length / most) }, (_, n) => new Map(all.slice(n * most, (n + 1) * most)));
  });

const chunksOf = (config: Config, request: Request, shown: Shown): Shown[] =>
  contrastChunks({ shown, tokens: config.chunkTokens, room: roomFor(config, request), lengths: config.lengths });

/** One short trajectory. */
const LEAST_ROOM = 1000;

/**
 * Returns the tokens that a prompt leaves for the empty `values`, after the reply and a tenth for the error of the estimate.
 * @throws BadInput if not even one short trajectory fits.
 */
export function roomIn(config: Config, prompt: string, values: Record<string, string>): number {
  const { contextTokens, maxTokens } = config;
  const used = renderPrompt(prompt, values).reduce((all, { content }) => all + tokensOf(content.length), 0);
  const room = Math.floor(0.9 * (contextTokens - maxTokens)) - used;
  if (room >= LEAST_ROOM) return room;
  const wanted = maxTokens + Math.ceil((used + LEAST_ROOM) / 0.9);
  throw badInput(
    `analyst.contextTokens is ${contextTokens}, of which maxTokens are ${maxTokens} and prompt, policy and tools about ${used}: ` +
      `no room for trajectories; set contextTokens to ${wanted} or more (and take a model that has them), or lower maxTokens`,
  );
}

/** Returns the tokens that a request leaves for trajectories. @throws BadInput where there is none. */
export function roomFor(config: Config, { prompt, values, lists }: Request): number {
  const nothing = Object.keys(lists(new Map())).map((name) => [name, '']);
  return roomIn(config, prompt, { ...values, ...Object.fromEntries(nothing), trajectories: '' });
}

/** Asks the questions of one step; each answer is progress. */
export async function askAll<Item, Answer>(o: {
  config: Config;
  step: string;
  work: Pick<DiscoverInput, 'ledger' | 'signal' | 'progress'>;
  seed: number;
  items: readonly Item[];
  messages: (item: Item) => readonly ChatMessage[];
  read: (text: string, item: Item) => Read<Answer>;
}): Promise<Answer[]> {
  const { config, step, work, seed, items } = o;
  const { ledger, signal } = work;
  const answers: Answer[] = [];
  let answered = 0;
  // After a failure no more questions start. Running ones end, and their replies are stored for the next attempt.
  await forEachBounded({
    items: [...items.entries()],
    concurrency: config.concurrency,
    signal,
    async work([n, item]) {
      const read = (text: string) => o.read(text, item);
      const asking = { ledger, step, signal };
      answers[n] = await answerOf({ ...config, messages: o.messages(item), seed, read, asking });
      work.progress(++answered, items.length);
    },
  });
  return answers;
}
