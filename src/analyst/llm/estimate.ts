/**
 * What an analysis will ask, before anything is asked. Invariants: requests and prompts are those that the analyst makes, cut by the same code;
 * how much a reply says is a guess, and every guess is a constant here.
 */
import { isSuccess, type ScoredRollout } from '../../domain/rollout';
import { shortIds } from '../../domain/transcript';
import type { PlannedAnalysis, PlannedRequests } from '../analyst';
import { LONGEST_DEFINITION } from './checks';
import { discoveryChunks, discoveryPrompt, discoveryRoom } from './discovery';
import { emptyLabelValues, labelChunks, labelPrompt } from './labels';
import { byShortId, LEAST_ROOM, promptTokens, roomLeft, sizeIn, type Config } from './requests';

/** Of a reply, in tokens: thinking before the answer, what is proposed, where one failure begins, one label with its reason. */
const THINKING = 1500;
const PROPOSALS = 2500;
const FAILURE = 50;
const LABEL = 40;

/** Until discovery has said how many there are, and what they are. */
const CANDIDATES = 6;
const candidatesOf = (count: number, characters: number) =>
  Array.from({ length: count }, () => ({ name: '', definition: 'x'.repeat(characters) }));
const TYPICAL_DEFINITION = 400;
const LONGEST_NAME = 80;

export function estimate(
  config: Config,
  { rollouts, description, rule, ...o }: PlannedAnalysis,
): { discovery: PlannedRequests; pass: PlannedRequests } {
  const ids = shortIds(rollouts);
  const discovering = { description, ids, ...rule };
  const chunks = discoveryChunks(config, { ...discovering, rollouts });
  const merges = chunks.length > 1 ? 1 : 0;
  const shown = chunks.map((chunk) => discoveryPrompt(config, { ...discovering, rollouts: byShortId(chunk, ids) }));
  const discovery = {
    requests: chunks.length + merges,
    promptTokens: sum(shown.map(({ messages }) => promptTokens(messages))) + merges * chunks.length * PROPOSALS,
    completionTokens: (chunks.length + merges) * (THINKING + PROPOSALS),
  };

  const candidates = o.candidates ?? candidatesOf(Math.min(CANDIDATES, rule.maxCandidates), TYPICAL_DEFINITION);
  const labeling = { description, ids, candidates };
  const parts = labelChunks(config, { ...labeling, rollouts });
  const failed = rollouts.filter((rollout) => !isSuccess(rollout)).length;
  const pass = {
    requests: parts.length,
    promptTokens: sum(
      parts.map((part) => promptTokens(labelPrompt(config, { ...labeling, rollouts: byShortId(part, ids) }))),
    ),
    completionTokens: parts.length * THINKING + failed * FAILURE + rollouts.length * candidates.length * LABEL,
  };
  return { discovery, pass };
}

const sum = (counts: readonly number[]): number => counts.reduce((total, count) => total + count, 0);

/** Whatever discovery proposes: also beside the longest definitions that are taken. */
export function tooLong(config: Config, { rollouts, description, rule }: PlannedAnalysis): string[] {
  const ids = shortIds(rollouts);
  const longest = candidatesOf(rule.maxCandidates, LONGEST_DEFINITION + LONGEST_NAME);
  const room = Math.min(
    discoveryRoom(config, { description, ...rule }),
    // Longest definitions are rare: they alone make no context too small.
    Math.max(LEAST_ROOM, roomLeft(config, 'label', emptyLabelValues({ description, ids, candidates: longest }))),
  );
  const needed = (rollout: ScoredRollout, id: string) => sizeIn({ rollout, id, lengths: config.lengths }).needed;
  return rollouts.flatMap((rollout) =>
    needed(rollout, ids.get(rollout.key) ?? rollout.key) > room ? [rollout.key] : [],
  );
}
