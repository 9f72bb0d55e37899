/**
 * Capabilities that failures lack and successes show, and failures that are not the agent's. Invariants: every candidate cites a failure; only
 * what may be quoted becomes an example; the result does not depend on the order in which rollouts or replies come.
 */
import type { Candidate, Citation, Discovery } from '../../domain/capability';
import { compact, shortIds } from '../../domain/transcript';
import { isSuccess, type ScoredRollout } from '../../domain/rollout';
import { seedOf } from '../../artifacts/hash';
import { answerOf } from '../../language-model/answer';
import type { Asking } from '../../language-model/types';
import type { DiscoverInput } from '../analyst';
import { contrastChunks } from './chunks';
import { readDiscovery, type Found, type Proposal, type Step } from './discovery-answer';
import { mergeProposals } from './merge';
import { askAll, byShortId, readable, roomIn, targetText, type Means } from './request';

const STEP = 'discovery';

export async function discover(means: Means, input: DiscoverInput): Promise<Discovery> {
  const { rollouts, quotable, description, rule, ledger } = input;
  // Without both outcomes there is nothing to contrast.
  if (!rollouts.some(isSuccess) || rollouts.every(isSuccess)) return { candidates: [], faults: [] };
  const ids = shortIds(rollouts);
  const byId = byShortId(rollouts, ids);
  const tools = description.tools.map(({ name }) => name);
  const seed = seedOf(`llm ${STEP} ${input.seed}`);
  const common = { ...rule, tools, seed, description, ids };

  const chunks = chunksOf(means, { ...common, rollouts });
  const found = await askAll({
    items: chunks,
    step: STEP,
    ledger,
    work: input,
    after: chunks.length > 1 ? 1 : 0,
    ask: (chunk, asking) => askChunk(means, { ...common, chunk, asking }),
  });

  const proposals = found.flatMap(({ capabilities }) => capabilities);
  const told = { trajectories: compact({ rollouts: [...byId.values()], ids, lengths: means.lengths }), tools };
  const merging = { ...rule, proposals, told, seed, step: STEP, ledger, work: input, before: chunks.length };
  const several = found.filter(({ capabilities }) => capabilities.length > 0).length > 1;
  const kept = several ? await mergeProposals(means, merging) : proposals;

  const cite = ({ rollout, message, says }: Step): Citation[] => {
    const key = byId.get(rollout)?.key;
    const text = readable(says, byId, rollout);
    return key === undefined ? [] : [{ rollout: key, message, says: text, ...(text !== says && { verbatim: says }) }];
  };
  return {
    candidates: kept.map((proposal) => candidateOf({ proposal, cite, quotable })),
    faults: found.flatMap(({ faults }) =>
      faults.map(({ of, what, steps }) => ({
        of,
        what: readable(what, byId, ''),
        citations: steps.flatMap(cite),
      })),
    ),
  };
}

type Common = Pick<DiscoverInput, 'description'> & {
  maxCandidates: number;
  ids: ReadonlyMap<string, string>;
};
const valuesOf = ({ description, maxCandidates }: Common) => ({
  ...targetText(description),
  maxCandidates: String(maxCandidates),
});

/** Those with a failure: the others have nothing to be found. */
function chunksOf(means: Means, o: Common & { rollouts: readonly ScoredRollout[] }): ScoredRollout[][] {
  const room = roomIn(means, 'discover', { ...valuesOf(o), trajectories: '', failed: '', passed: '' });
  const chunks = contrastChunks({ ...means, rollouts: o.rollouts, ids: o.ids, tokens: means.chunkTokens, room });
  return chunks.filter((chunk) => !chunk.every(isSuccess));
}

function askChunk(
  means: Means,
  o: Common & { chunk: readonly ScoredRollout[]; tools: readonly string[]; seed: number; asking: Asking },
): Promise<Found> {
  const { chunk, ids, tools, seed, asking, maxCandidates } = o;
  const trajectories = compact({ rollouts: chunk, ids, lengths: means.lengths });
  const rollouts = byShortId(chunk, ids);
  const of = (passed: boolean) => idList([...rollouts].flatMap(([id, one]) => (isSuccess(one) === passed ? [id] : [])));
  const values = { ...valuesOf(o), trajectories, failed: of(false), passed: of(true) };
  return answerOf({
    ...means,
    messages: means.prompts.render('discover', values),
    seed,
    read: (text) => readDiscovery({ text, rollouts, told: { trajectories, tools }, maxCandidates }),
    asking,
  });
}

const idList = (ids: readonly string[]): string => ids.join(', ') || 'none';

/** The method's: a candidate is shown by so many trajectories, of both outcomes. */
const EXAMPLES = 4;

function candidateOf(o: {
  proposal: Proposal;
  cite: (step: Step) => Citation[];
  quotable: ReadonlySet<string>;
}): Candidate {
  const { name, definition } = o.proposal;
  const [lacking, shown] = [o.proposal.lacking.flatMap(o.cite), o.proposal.shown.flatMap(o.cite)];
  const examples = (citations: readonly Citation[]) => [
    ...new Set(citations.flatMap(({ rollout }) => (o.quotable.has(rollout) ? [rollout] : []))),
  ];
  const [failed, passed] = [examples(lacking), examples(shown)];
  const ofFailed = failed.slice(0, Math.max(EXAMPLES / 2, EXAMPLES - passed.length));
  return {
    name,
    definition,
    examples: [...ofFailed, ...passed.slice(0, EXAMPLES - ofFailed.length)],
    citations: [...lacking, ...shown],
  };
}
