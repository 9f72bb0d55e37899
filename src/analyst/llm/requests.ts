/**
 * The requests of the analyst that asks a language model: what they show, the room that they have, and what they will cost. What stays the same
 * from request to request stands first, byte for byte; an estimate counts the prompts that are asked, and guesses the replies alone.
 */
import { forEachBounded } from '../../domain/concurrency';
import { tokensOf } from '../../domain/endpoints';
import type { EnvironmentDescription } from '../../domain/environment';
import { OutsideFailure } from '../../domain/failures';
import { escapeLineBreaks, plainLine } from '../../domain/plain-text';
import { isSuccess, type ScoredRollout } from '../../domain/rollout';
import { byTask, compactOne, type Lengths, shortIds } from '../../domain/transcript';
import { answerOf, type Read, type Prompts } from '../../llm/answer';
import type { ChatMessage, LanguageModel } from '../../llm/model';
import type { DiscoverInput, LabelInput, PlannedAnalysis, PlannedRequests } from '../analyst';
import { LONGEST_DEFINITION } from './answers';
import { contrastChunks, partsAtTasks, type Shown, sizeOf } from './chunks';

/** The analyst's options, opened. */
export interface Config {
  model: LanguageModel;
  prompts: Prompts;
  contextTokens: number;
  maxTokens: number;
  concurrency: number;
  chunkTokens: number;
  labelsPerChunk: number;
  lengths: Lengths;
  repairs: number;
}

/** In the order of tasks and attempts, whatever order they came in. */
export function shownOf(rollouts: readonly ScoredRollout[]): Shown {
  const ids = shortIds(rollouts);
  return new Map([...rollouts].sort(byTask).map((rollout) => [ids.get(rollout.key) ?? rollout.key, rollout]));
}

export const trajectoriesText = (shown: Shown, lengths: Lengths): string =>
  [...shown].map(([id, rollout]) => compactOne({ rollout, id, lengths })).join('\n\n');

/** What a model wrote, for people, who don't know the ids: `r14.16` is message 16 of a task and attempt; in a text about `own` the number is enough. */
export const readable = (text: string, shown: Shown, own?: string): string =>
  text.replace(/\b(r\d+)(?:\.(\d+))?\b/g, (written, id: string, message?: string) => {
    const rollout = shown.get(id);
    if (!rollout) return written;
    const trajectory = `task ${plainLine(rollout.task)}, attempt ${rollout.attempt}`;
    if (message === undefined) return trajectory;
    return id === own ? `message ${message}` : `message ${message} of ${trajectory}`;
  });

/** A request about trajectories: its prompt, the values that are always the same, and the ids that it lists of those that it shows. */
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
  return config.prompts.render(prompt, { ...values, ...Object.fromEntries(ids), trajectories });
}

/** What the requests of discovery show: only chunks with a failure, since there is nothing to be found in the others. */
export const discoveryChunks = (config: Config, request: Request, shown: Shown): Shown[] =>
  chunksOf(config, request, shown).filter((chunk) => ![...chunk.values()].every(isSuccess));

export const labelChunks = (config: Config, request: Request, shown: Shown): Shown[] =>
  chunksOf(config, request, shown).flatMap((chunk) => partsAtTasks(chunk, config.labelsPerChunk));

const chunksOf = (config: Config, request: Request, shown: Shown): Shown[] =>
  contrastChunks({ shown, tokens: config.chunkTokens, room: roomFor(config, request), lengths: config.lengths });

/** One short trajectory. */
const LEAST_ROOM = 1000;

const promptTokens = (messages: readonly ChatMessage[]): number =>
  sum(messages.map(({ content }) => tokensOf(content.length)));

/** Tokens of a prompt, and what it leaves for more: the reply is allowed for, and a tenth for the estimate's error. May be negative. */
function roomBeside(config: Config, prompt: string, values: Record<string, string>) {
  const used = promptTokens(config.prompts.render(prompt, values));
  return { used, room: Math.floor(0.9 * (config.contextTokens - config.maxTokens)) - used };
}

/** For what is empty in `values`. @throws BadInput where not even one short trajectory fits. */
export function roomIn(config: Config, prompt: string, values: Record<string, string>): number {
  const { contextTokens, maxTokens } = config;
  const { used, room } = roomBeside(config, prompt, values);
  if (room >= LEAST_ROOM) return room;
  const wanted = maxTokens + Math.ceil((used + LEAST_ROOM) / 0.9);
  throw new OutsideFailure(
    'BadInput',
    `analyst.contextTokens is ${contextTokens}, of which maxTokens are ${maxTokens} and prompt, policy and tools about ${used}: ` +
      `no room for trajectories; set contextTokens to ${wanted} or more (and take a model that has them), or lower maxTokens`,
  );
}

/** A request's values where it shows nothing. */
const emptyValues = ({ values, lists }: Request): Record<string, string> => ({
  ...values,
  ...Object.fromEntries(Object.keys(lists(new Map())).map((name) => [name, ''])),
  trajectories: '',
});

/** For trajectories. @throws BadInput where there is none. */
export const roomFor = (config: Config, request: Request): number =>
  roomIn(config, request.prompt, emptyValues(request));

/** Asks the questions of one step; each answer is progress, beside those answered `before` and to come `after`. */
export async function askAll<Item, Answer>(o: {
  config: Config;
  step: string;
  work: Pick<DiscoverInput, 'ledger' | 'signal' | 'progress'>;
  seed: number;
  items: readonly Item[];
  messages: (item: Item) => readonly ChatMessage[];
  read: (text: string, item: Item) => Read<Answer>;
  before?: number;
  after?: number;
}): Promise<Answer[]> {
  const { config, step, work, seed, items, before = 0, after = 0 } = o;
  const { ledger, signal } = work;
  const answers: Answer[] = [];
  let answered = before;
  // After a failure no more questions begin; those under way end, and their replies are kept for the next attempt.
  await forEachBounded({
    items: [...items.entries()],
    concurrency: config.concurrency,
    signal,
    async work([n, item]) {
      const read = (text: string) => o.read(text, item);
      const asking = { ledger, step, signal };
      answers[n] = await answerOf({ ...config, messages: o.messages(item), seed, read, asking });
      work.progress(++answered, before + items.length + after);
    },
  });
  return answers;
}

/** Guesses of a reply, in tokens. */
const GUESS = { thinking: 1500, proposals: 2500, failure: 50, label: 40 };
/** Candidates until discovery has said how many there are, and characters of their definitions. */
const TYPICAL = { candidates: 6, definition: 400 };
const LONGEST_NAME = 80;

const candidatesOf = (count: number, characters: number) =>
  Array.from({ length: count }, () => ({ name: '', definition: 'x'.repeat(characters) }));

/** What discovery and one pass will ask. */
export function estimate(config: Config, o: PlannedAnalysis): { discovery: PlannedRequests; pass: PlannedRequests } {
  const { rollouts, description, rule } = o;
  const shown = shownOf(rollouts);
  const tokensIn = (request: Request, chunks: readonly Shown[]) =>
    sum(chunks.map((chunk) => promptTokens(promptOf(config, request, chunk))));

  const discovery = discoveryRequest({ description, rule });
  const chunks = discoveryChunks(config, discovery, shown);
  const merges = chunks.length > 1 ? 1 : 0;

  const guessed = () => candidatesOf(Math.min(TYPICAL.candidates, rule.maxCandidates), TYPICAL.definition);
  const candidates = o.candidates ?? guessed();
  const labels = labelRequest({ description, candidates });
  const parts = labelChunks(config, labels, shown);
  const failed = rollouts.filter((rollout) => !isSuccess(rollout)).length;
  return {
    discovery: {
      requests: chunks.length + merges,
      promptTokens: tokensIn(discovery, chunks) + merges * chunks.length * GUESS.proposals,
      completionTokens: (chunks.length + merges) * (GUESS.thinking + GUESS.proposals),
    },
    pass: {
      requests: parts.length,
      promptTokens: tokensIn(labels, parts),
      completionTokens:
        parts.length * GUESS.thinking + failed * GUESS.failure + rollouts.length * candidates.length * GUESS.label,
    },
  };
}

/** Keys of rollouts that no request can hold, whatever discovery proposes: also beside the longest definitions that are taken. */
export function tooLong(config: Config, { rollouts, description, rule }: PlannedAnalysis): string[] {
  const longest = candidatesOf(rule.maxCandidates, LONGEST_DEFINITION + LONGEST_NAME);
  const { room } = roomBeside(config, 'label', emptyValues(labelRequest({ description, candidates: longest })));
  // Longest definitions are rare: they alone make no context too small.
  const limit = Math.min(roomFor(config, discoveryRequest({ description, rule })), Math.max(LEAST_ROOM, room));
  return [...shownOf(rollouts)].flatMap(([id, rollout]) =>
    sizeOf({ rollout, id, lengths: config.lengths }).needed > limit ? [rollout.key] : [],
  );
}

const sum = (counts: readonly number[]): number => counts.reduce((total, count) => total + count, 0);
