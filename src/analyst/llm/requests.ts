/**
 * The requests of the analyst that asks a language model: what they show, the room that they have, and what they will cost. Invariants: what
 * stays the same from request to request stands first, byte for byte; an estimate counts the prompts that are asked, and what it guesses of a
 * reply is a constant here.
 */
import { tokensOf } from '../../domain/endpoints';
import type { EnvironmentDescription } from '../../domain/environment';
import { OutsideFailure } from '../../domain/failures';
import type { ToolSchema } from '../../domain/messages';
import { isSuccess, type ScoredRollout } from '../../domain/rollout';
import { byTask, compactOne, type Lengths, shortIds } from '../../domain/transcript';
import type { Work } from '../../domain/work';
import type { Prompts } from '../../language-model/prompts';
import type { Asking, LanguageModel, Ledger } from '../../language-model/types';
import type { DiscoverInput, LabelInput, PlannedAnalysis, PlannedRequests } from '../analyst';
import { LONGEST_DEFINITION } from './answers';
import { contrastChunks, partsAtTasks, sizeOf } from './chunks';

/** The analyst's options, opened. */
export interface Config {
  model: LanguageModel;
  prompts: Prompts;
  contextTokens: number;
  maxTokens: number;
  chunkTokens: number;
  labelsPerChunk: number;
  lengths: Lengths;
  repairs: number;
}

/** Trajectories by the ids that the model knows: r1, r2, ... */
export type Shown = ReadonlyMap<string, ScoredRollout>;

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
    const trajectory = `task ${rollout.task}, attempt ${rollout.attempt}`;
    if (message === undefined) return trajectory;
    return id === own ? `message ${message}` : `message ${message} of ${trajectory}`;
  });

/** A request that shows trajectories: its prompt, the values that are always the same, and those that list what is shown. */
export interface Request {
  prompt: string;
  values: Record<string, string>;
  lists: (shown: Shown) => Record<string, string>;
}

const targetText = ({ policy, tools }: Pick<EnvironmentDescription, 'policy' | 'tools'>) => ({
  policy: policy.trim() || '(none is written down)',
  tools: tools.map(toolText).join('\n') || '(none)',
});

const toolText = ({ name, description, parameters, annotations }: ToolSchema): string =>
  `${name}${annotations?.readOnlyHint ? ' (changes nothing)' : ''}: ${description}\n  parameters: ${JSON.stringify(parameters)}`;

export function discoveryRequest(o: {
  description: EnvironmentDescription;
  rule: Pick<DiscoverInput['rule'], 'maxCandidates'>;
}): Request {
  const idsOf = (shown: Shown, passed: boolean) =>
    [...shown].flatMap(([id, rollout]) => (isSuccess(rollout) === passed ? [id] : [])).join(', ') || 'none';
  return {
    prompt: 'discover',
    values: { ...targetText(o.description), maxCandidates: String(o.rule.maxCandidates) },
    lists: (shown) => ({ failed: idsOf(shown, false), passed: idsOf(shown, true) }),
  };
}

export function labelRequest(o: {
  description: EnvironmentDescription;
  candidates: readonly Pick<LabelInput['candidates'][number], 'name' | 'definition'>[];
}): Request {
  const capabilities = o.candidates.map(({ name, definition }) => `- ${name}: ${definition}`).join('\n');
  return {
    prompt: 'label',
    values: { ...targetText(o.description), capabilities },
    lists: (shown) => ({ ids: [...shown.keys()].join(', ') }),
  };
}

export const promptOf = ({ prompts, lengths }: Config, { prompt, values, lists }: Request, shown: Shown) =>
  prompts.render(prompt, { ...values, ...lists(shown), trajectories: trajectoriesText(shown, lengths) });

/** What the requests of discovery show: only chunks with a failure, since there is nothing to be found in the others. */
export const discoveryChunks = (config: Config, request: Request, shown: Shown): Shown[] =>
  chunksOf(config, request, shown).filter((chunk) => ![...chunk.values()].every(isSuccess));

export const labelChunks = (config: Config, request: Request, shown: Shown): Shown[] =>
  chunksOf(config, request, shown).flatMap((chunk) => partsAtTasks(chunk, config.labelsPerChunk));

const chunksOf = (config: Config, request: Request, shown: Shown): Shown[] =>
  contrastChunks({ shown, tokens: config.chunkTokens, room: roomFor(config, request), lengths: config.lengths });

/** One short trajectory. */
const LEAST_ROOM = 1000;

type PromptConfig = Pick<Config, 'prompts' | 'contextTokens' | 'maxTokens'>;

const promptTokens = (messages: readonly { content: string }[]): number =>
  sum(messages.map(({ content }) => tokensOf(content.length)));

/** Tokens that are left for what is not in `values`; the reply is allowed for, and a tenth for the estimate's error. May be negative. */
function roomLeft(config: PromptConfig, name: string, values: Record<string, string>) {
  const rest = promptTokens(config.prompts.render(name, values));
  return { rest, room: Math.floor(0.9 * (config.contextTokens - config.maxTokens)) - rest };
}

/** The same. @throws BadInput where not even one short trajectory fits. */
export function roomIn(config: PromptConfig, name: string, values: Record<string, string>): number {
  const { contextTokens, maxTokens } = config;
  const { rest, room } = roomLeft(config, name, values);
  if (room >= LEAST_ROOM) return room;
  const wanted = maxTokens + Math.ceil((rest + LEAST_ROOM) / 0.9);
  throw new OutsideFailure(
    'BadInput',
    `analyst.contextTokens is ${contextTokens}, of which maxTokens are ${maxTokens} and prompt, policy and tools about ${rest}: ` +
      `no room for trajectories; set contextTokens to ${wanted} or more (and take a model that has them), or lower maxTokens`,
  );
}

/** A request's values where it shows nothing. */
function emptyValues({ values, lists }: Request): Record<string, string> {
  const blank = Object.keys(lists(new Map())).map((name) => [name, ''] as const);
  return { ...values, ...Object.fromEntries(blank), trajectories: '' };
}

/** For trajectories. @throws BadInput where there is none. */
export const roomFor = (config: Config, request: Request): number =>
  roomIn(config, request.prompt, emptyValues(request));

/** Requests at once; each one that is done is progress. */
export async function askAll<Item, Answer>(o: {
  items: readonly Item[];
  step: string;
  work: Work & { ledger: Ledger };
  /** Requests that are done, and those that will be made, beside these. */
  before?: number;
  after?: number;
  ask: (item: Item, asking: Asking) => Promise<Answer>;
}): Promise<Answer[]> {
  const { items, step, work, before = 0, after = 0, ask } = o;
  let done = before;
  const asking: Asking = { ledger: work.ledger, step, signal: work.signal };
  // The others go on where one fails: what is being paid for is kept, and found again when the step is tried again.
  const settled = await Promise.allSettled(
    items.map(async (item) => {
      const answer = await ask(item, asking);
      work.progress(++done, before + items.length + after);
      return answer;
    }),
  );
  const failures = settled.flatMap((one) => (one.status === 'rejected' ? [one.reason as unknown] : []));
  // What no retry mends comes before what one does.
  if (failures.length > 0) throw failures.find((one) => one instanceof OutsideFailure && !one.retryable) ?? failures[0];
  return settled.flatMap((one) => (one.status === 'fulfilled' ? [one.value] : []));
}

/** Guesses of a reply, in tokens: thinking before the answer, what is proposed, where one failure begins, one label with its reason. */
const THINKING = 1500;
const PROPOSALS = 2500;
const FAILURE = 50;
const LABEL = 40;

/** Until discovery has said how many there are, and what they are. */
const CANDIDATES = 6;
const TYPICAL_DEFINITION = 400;
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

  const candidates = o.candidates ?? candidatesOf(Math.min(CANDIDATES, rule.maxCandidates), TYPICAL_DEFINITION);
  const labels = labelRequest({ description, candidates });
  const parts = labelChunks(config, labels, shown);
  const failed = rollouts.filter((rollout) => !isSuccess(rollout)).length;
  return {
    discovery: {
      requests: chunks.length + merges,
      promptTokens: tokensIn(discovery, chunks) + merges * chunks.length * PROPOSALS,
      completionTokens: (chunks.length + merges) * (THINKING + PROPOSALS),
    },
    pass: {
      requests: parts.length,
      promptTokens: tokensIn(labels, parts),
      completionTokens: parts.length * THINKING + failed * FAILURE + rollouts.length * candidates.length * LABEL,
    },
  };
}

/** Keys of rollouts that no request can hold, whatever discovery proposes: also beside the longest definitions that are taken. */
export function tooLong(config: Config, { rollouts, description, rule }: PlannedAnalysis): string[] {
  const longest = candidatesOf(rule.maxCandidates, LONGEST_DEFINITION + LONGEST_NAME);
  const { room } = roomLeft(config, 'label', emptyValues(labelRequest({ description, candidates: longest })));
  // Longest definitions are rare: they alone make no context too small.
  const limit = Math.min(roomFor(config, discoveryRequest({ description, rule })), Math.max(LEAST_ROOM, room));
  return [...shownOf(rollouts)].flatMap(([id, rollout]) =>
    sizeOf({ rollout, id, lengths: config.lengths }).needed > limit ? [rollout.key] : [],
  );
}

const sum = (counts: readonly number[]): number => counts.reduce((total, count) => total + count, 0);
