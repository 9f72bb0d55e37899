/**
 * One list of capabilities from those of several chunks. Invariant: a model says which proposals are one; the citations are the proposals' own.
 */
import { z } from 'zod';
import { cut, LENGTHS } from '../../domain/transcript';
import { OutsideFailure } from '../../domain/failures';
import type { Work } from '../../domain/work';
import { answerOf, type Read } from '../../language-model/answer';
import { jsonIn } from '../../language-model/json';
import type { Ledger } from '../../language-model/types';
import { bounded, capabilityDefects, shapeDefects, type Told } from './checks';
import { tokensOf } from './chunks';
import type { Proposal, Step } from './discovery-answer';
import { askAll, roomIn, type Means } from './request';

const answerSchema = z.object({
  capabilities: z
    .array(
      z.object({
        name: z.string(),
        definition: z.string().trim().min(1, 'it is empty; say it in 2 or 3 sentences'),
        merges: z.array(z.number().int()).min(1, 'it is empty; give the numbers of the proposals that it stands for'),
      }),
    )
    .min(1, 'it is empty; keep at least one'),
});

export interface Merging {
  proposals: readonly Proposal[];
  told: Told;
  maxCandidates: number;
  seed: number;
  step: string;
  ledger: Ledger;
  work: Work;
  /** Requests that were made before. */
  before: number;
}

/** In one request, or, where the proposals are too many for one, in rounds. */
export async function mergeProposals(means: Means, merging: Merging): Promise<Proposal[]> {
  const { proposals, maxCandidates, told, seed, before } = merging;
  const limit = String(maxCandidates);
  const batches = batched(proposals, roomIn(means, 'merge', { proposals: '', maxCandidates: limit }));
  const merged = await askAll({
    ...merging,
    items: batches,
    ask: (batch, asking) =>
      answerOf({
        ...means,
        messages: means.prompts.render('merge', {
          proposals: batch.map(proposalText).join('\n\n'),
          maxCandidates: limit,
        }),
        seed,
        read: (text) => readMerged({ text, proposals: batch, told, maxCandidates }),
        asking,
      }),
  });
  const kept = merged.flat();
  if (batches.length === 1) return kept;
  if (kept.length < proposals.length)
    return mergeProposals(means, { ...merging, proposals: kept, before: before + batches.length });
  throw new OutsideFailure(
    'BadInput',
    `analyst.contextTokens is ${means.contextTokens}: ${proposals.length} proposals don't fit into one request; ` +
      'raise it (and take a model that has them), or raise chunkTokens, so that there are fewer chunks',
  );
}

/** Steps of each outcome that show what a proposal means; all of them stay its citations. */
const STEPS_SHOWN = 3;

function proposalText({ name, definition, lacking, shown }: Proposal, n: number): string {
  const lines = (outcome: string, steps: readonly Step[]) => [
    `${outcome} (${new Set(steps.map(({ rollout }) => rollout)).size} attempts):`,
    ...steps
      .slice(0, STEPS_SHOWN)
      .map(({ rollout, message, says }) => `- ${rollout}.${message}: ${cut(says, LENGTHS.message)}`),
  ];
  return [`[${n + 1}] ${name}: ${definition}`, ...lines('lacking', lacking), ...lines('shown', shown)].join('\n');
}

/** In order, as many as fit. */
function batched(proposals: readonly Proposal[], room: number): Proposal[][] {
  const batches: Proposal[][] = [];
  let left = 0;
  for (const proposal of proposals) {
    const tokens = tokensOf(proposalText(proposal, proposals.length)) + 1;
    if (tokens > left) {
      batches.push([]);
      left = room;
    }
    batches.at(-1)?.push(proposal);
    left -= tokens;
  }
  return batches;
}

export function readMerged(o: {
  text: string;
  /** Numbered from 1 in the request. */
  proposals: readonly Proposal[];
  told: Told;
  maxCandidates: number;
}): Read<Proposal[]> {
  const { proposals, told, maxCandidates } = o;
  const json = jsonIn(o.text);
  if ('defect' in json) return { defects: [json.defect] };
  const { data, error } = answerSchema.safeParse(json.value);
  if (error) return { defects: shapeDefects(error) };
  const { capabilities } = data;
  const taken = capabilities.flatMap(({ merges }, n) => merges.map((number) => ({ number, n })));
  const defects = [
    ...capabilityDefects({ capabilities, at: 'capabilities', maxCandidates, told }),
    ...taken.flatMap(({ number, n }, place) => {
      const at = `capabilities.${n}.merges`;
      if (!proposals[number - 1])
        return [`${at} names proposal ${number}; the proposals are numbered 1 to ${proposals.length}`];
      const first = taken.findIndex((other) => other.number === number);
      return first < place ? [`${at} names proposal ${number} a second time; each goes into one entry`] : [];
    }),
  ];
  if (defects.length > 0) return { defects: bounded(defects) };
  return {
    value: capabilities.map(({ name, definition, merges }) => {
      const merged = merges.flatMap((number) => proposals[number - 1] ?? []);
      const steps = (of: 'lacking' | 'shown') => merged.flatMap((proposal) => proposal[of]);
      return { name, definition, lacking: steps('lacking'), shown: steps('shown') };
    }),
  };
}
