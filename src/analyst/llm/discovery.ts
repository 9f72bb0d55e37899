/**
 * Discovery: capabilities that failures lack and successes show, and failures that are not the agent's. Where the rollouts fill several requests,
 * a model says which of their proposals are one. Invariants: every candidate cites a failure, and every step that is cited was shown and is of
 * the outcome that it is cited for; only what may be quoted becomes an example; the order in which rollouts or replies come changes nothing.
 */
import { z } from 'zod';
import { seedOf } from '../../artifacts/hash';
import type { Candidate, Citation, Discovery } from '../../domain/capability';
import { OutsideFailure } from '../../domain/failures';
import { isSuccess, type ScoredRollout } from '../../domain/rollout';
import { compact, cut, LENGTHS, shortIds } from '../../domain/transcript';
import type { Work } from '../../domain/work';
import { answerOf, jsonIn, type Read } from '../../language-model/answer';
import type { Asking, Ledger } from '../../language-model/types';
import type { DiscoverInput } from '../analyst';
import { bounded, capabilityDefects, shapeDefects, type ShownText, stepDefect } from './checks';
import { askAll, byShortId, type Config, contrastChunks, readable, roomIn, targetText, tokensOf } from './requests';

const STEP = 'discovery';

export async function discover(config: Config, input: DiscoverInput): Promise<Discovery> {
  const { rollouts, quotable, description, rule, ledger } = input;
  // Without both outcomes there is nothing to contrast.
  if (!rollouts.some(isSuccess) || rollouts.every(isSuccess)) return { candidates: [], faults: [] };
  const ids = shortIds(rollouts);
  const byId = byShortId(rollouts, ids);
  const tools = description.tools.map(({ name }) => name);
  const seed = seedOf(`llm ${STEP} ${input.seed}`);
  const common = { ...rule, tools, seed, description, ids };

  const chunks = discoveryChunks(config, { ...common, rollouts });
  const answers = await askAll({
    items: chunks,
    step: STEP,
    ledger,
    work: input,
    after: chunks.length > 1 ? 1 : 0,
    ask: (chunk, asking) => askChunk(config, { ...common, chunk, asking }),
  });

  const proposals = answers.flatMap(({ capabilities }) => capabilities);
  const shownText = { trajectories: compact({ rollouts: [...byId.values()], ids, lengths: config.lengths }), tools };
  const merging = { ...rule, proposals, shownText, seed, step: STEP, ledger, work: input, before: chunks.length };
  const several = answers.filter(({ capabilities }) => capabilities.length > 0).length > 1;
  const kept = several ? await mergeProposals(config, merging) : proposals;

  const cite = ({ rollout, message, says }: Step): Citation[] => {
    const key = byId.get(rollout)?.key;
    const text = readable(says, byId, rollout);
    return key === undefined ? [] : [{ rollout: key, message, says: text, ...(text !== says && { verbatim: says }) }];
  };
  return {
    candidates: kept.map((proposal) => candidateOf({ proposal, cite, quotable })),
    faults: answers.flatMap(({ faults }) =>
      faults.map(({ of, what, steps }) => ({
        of,
        what: readable(what, byId, ''),
        citations: steps.flatMap(cite),
      })),
    ),
  };
}

type DiscoveryCommon = Pick<DiscoverInput, 'description'> & {
  maxCandidates: number;
  ids: ReadonlyMap<string, string>;
};
const valuesOf = ({ description, maxCandidates }: Omit<DiscoveryCommon, 'ids'>) => ({
  ...targetText(description),
  maxCandidates: String(maxCandidates),
});

/** @throws BadInput where there is none. */
export const discoveryRoom = (config: Config, o: Omit<DiscoveryCommon, 'ids'>): number =>
  roomIn(config, 'discover', { ...valuesOf(o), trajectories: '', failed: '', passed: '' });

/** What the requests show: chunks with a failure, since the others have nothing to be found. */
export function discoveryChunks(
  config: Config,
  o: DiscoveryCommon & { rollouts: readonly ScoredRollout[] },
): ScoredRollout[][] {
  const room = discoveryRoom(config, o);
  const chunks = contrastChunks({ ...config, rollouts: o.rollouts, ids: o.ids, tokens: config.chunkTokens, room });
  return chunks.filter((chunk) => !chunk.every(isSuccess));
}

function askChunk(
  config: Config,
  o: DiscoveryCommon & { chunk: readonly ScoredRollout[]; tools: readonly string[]; seed: number; asking: Asking },
): Promise<DiscoveryAnswer> {
  const { chunk, ids, tools, seed, asking, maxCandidates } = o;
  const rollouts = byShortId(chunk, ids);
  const { messages, trajectories } = discoveryPrompt(config, { ...o, rollouts });
  return answerOf({
    ...config,
    messages,
    seed,
    read: (text) => readDiscovery({ text, rollouts, shownText: { trajectories, tools }, maxCandidates }),
    asking,
  });
}

export function discoveryPrompt(config: Config, o: DiscoveryCommon & { rollouts: ReadonlyMap<string, ScoredRollout> }) {
  const { rollouts, ids } = o;
  const trajectories = compact({ rollouts: [...rollouts.values()], ids, lengths: config.lengths });
  const of = (passed: boolean) => idList([...rollouts].flatMap(([id, one]) => (isSuccess(one) === passed ? [id] : [])));
  const values = { ...valuesOf(o), trajectories, failed: of(false), passed: of(true) };
  return { messages: config.prompts.render('discover', values), trajectories };
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

const text = z.string().trim().min(1, 'it is empty; say it in a sentence');
const stepSchema = z.object({ rollout: z.string(), message: z.number().int(), says: text });
/** With the rollout by the id that the model knows. */
export type Step = z.infer<typeof stepSchema>;

const steps = z.array(stepSchema);
const discoveryAnswerSchema = z.object({
  capabilities: z.array(z.object({ name: z.string(), definition: text, lacking: steps, shown: steps })),
  faults: z.array(z.object({ of: z.enum(['environment', 'user']), what: text, steps: steps.min(1) })),
});
type DiscoveryAnswer = z.infer<typeof discoveryAnswerSchema>;
type Proposal = DiscoveryAnswer['capabilities'][number];

export function readDiscovery(o: {
  text: string;
  /** What was shown, by the ids that the model knows. */
  rollouts: ReadonlyMap<string, ScoredRollout>;
  shownText: ShownText;
  maxCandidates: number;
}): Read<DiscoveryAnswer> {
  const { rollouts, shownText, maxCandidates } = o;
  const json = jsonIn(o.text);
  if ('defect' in json) return { defects: [json.defect] };
  const { data, error } = discoveryAnswerSchema.safeParse(json.value);
  if (error) return { defects: shapeDefects(error) };
  const anyPassed = [...rollouts.values()].some(isSuccess);
  const defects = [
    ...capabilityDefects({ capabilities: data.capabilities, at: 'capabilities', maxCandidates, shownText }),
    ...data.capabilities.flatMap(({ lacking, shown }, n) => [
      ...citedDefects({ steps: lacking, at: `capabilities.${n}.lacking`, passed: false, wanted: true, rollouts }),
      ...citedDefects({ steps: shown, at: `capabilities.${n}.shown`, passed: true, wanted: anyPassed, rollouts }),
    ]),
    ...data.faults.flatMap((fault, n) =>
      fault.steps.flatMap((step, m) => {
        const defect = stepDefect(step, rollouts);
        return defect === undefined ? [] : [`faults.${n}.steps.${m}: ${defect}`];
      }),
    ),
  ];
  return defects.length > 0 ? { defects: bounded(defects) } : { value: data };
}

/** Steps that are to be of one outcome; `wanted`: at least one. */
function citedDefects(o: {
  steps: readonly Step[];
  at: string;
  passed: boolean;
  wanted: boolean;
  rollouts: ReadonlyMap<string, ScoredRollout>;
}): string[] {
  const { steps, at, passed, wanted, rollouts } = o;
  const outcome = passed ? 'PASSED' : 'FAILED';
  if (steps.length === 0 && wanted) return [`${at} is empty; cite at least one step of a trajectory that ${outcome}`];
  return steps.flatMap((step, n) => {
    const defect = stepDefect(step, rollouts);
    if (defect !== undefined) return [`${at}.${n}: ${defect}`];
    const rollout = rollouts.get(step.rollout);
    if (rollout && isSuccess(rollout) !== passed)
      return [`${at}.${n}: ${step.rollout} is no trajectory that ${outcome}; cite one that did, or leave the step out`];
    return [];
  });
}

const mergeAnswerSchema = z.object({
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

interface Merging {
  proposals: readonly Proposal[];
  shownText: ShownText;
  maxCandidates: number;
  seed: number;
  step: string;
  ledger: Ledger;
  work: Work;
  /** Requests that were made before. */
  before: number;
}

/** In one request, or, where the proposals are too many for one, in rounds. */
async function mergeProposals(config: Config, merging: Merging): Promise<Proposal[]> {
  const { proposals, maxCandidates, shownText, seed, before } = merging;
  const limit = String(maxCandidates);
  const batches = batched(proposals, roomIn(config, 'merge', { proposals: '', maxCandidates: limit }));
  const merged = await askAll({
    ...merging,
    items: batches,
    ask: (batch, asking) =>
      answerOf({
        ...config,
        messages: config.prompts.render('merge', {
          proposals: batch.map(proposalText).join('\n\n'),
          maxCandidates: limit,
        }),
        seed,
        read: (text) => readMerged({ text, proposals: batch, shownText, maxCandidates }),
        asking,
      }),
  });
  const kept = merged.flat();
  if (batches.length === 1) return kept;
  if (kept.length < proposals.length)
    return mergeProposals(config, { ...merging, proposals: kept, before: before + batches.length });
  throw new OutsideFailure(
    'BadInput',
    `analyst.contextTokens is ${config.contextTokens}: ${proposals.length} proposals don't fit into one request; ` +
      'raise it (and take a model that has them), or raise chunkTokens, so that there are fewer chunks',
  );
}

/** Steps of each outcome that show what a proposal config; all of them stay its citations. */
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
  shownText: ShownText;
  maxCandidates: number;
}): Read<Proposal[]> {
  const { proposals, shownText, maxCandidates } = o;
  const json = jsonIn(o.text);
  if ('defect' in json) return { defects: [json.defect] };
  const { data, error } = mergeAnswerSchema.safeParse(json.value);
  if (error) return { defects: shapeDefects(error) };
  const { capabilities } = data;
  const taken = capabilities.flatMap(({ merges }, n) => merges.map((number) => ({ number, n })));
  const defects = [
    ...capabilityDefects({ capabilities, at: 'capabilities', maxCandidates, shownText }),
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
