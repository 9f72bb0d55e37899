/**
 * Discovery: capabilities that failures lack and successes show, and failures that are not the agent's. Where the rollouts fill several requests,
 * a model says which of their proposals are one. Invariants: only what may be quoted becomes an example; the order in which rollouts or replies
 * come changes nothing.
 */
import { seedOf } from '../../artifacts/hash';
import { tokensOf } from '../../domain/endpoints';
import type { Candidate, Citation, Discovery } from '../../domain/capability';
import { OutsideFailure } from '../../domain/failures';
import { isSuccess } from '../../domain/rollout';
import { cut, LENGTHS } from '../../domain/transcript';
import { answerOf } from '../../language-model/answer';
import type { DiscoverInput } from '../analyst';
import { type Proposal, readDiscovery, readMerged, type ShownText, type Step } from './answers';
import {
  askAll,
  type Config,
  discoveryChunks,
  discoveryRequest,
  promptOf,
  readable,
  roomIn,
  shownOf,
  trajectoriesText,
} from './requests';

const STEP = 'discovery';

export async function discover(config: Config, input: DiscoverInput): Promise<Discovery> {
  const { rollouts, quotable, description } = input;
  // Without both outcomes there is nothing to contrast.
  if (!rollouts.some(isSuccess) || rollouts.every(isSuccess)) return { candidates: [], faults: [] };
  const { maxCandidates } = input.rule;
  const all = shownOf(rollouts);
  const tools = description.tools.map(({ name }) => name);
  const seed = seedOf(`llm ${STEP} ${input.seed}`);
  const request = discoveryRequest(input);
  const chunks = discoveryChunks(config, request, all);
  const answers = await askAll({
    items: chunks,
    step: STEP,
    work: input,
    after: chunks.length > 1 ? 1 : 0,
    ask: (shown, asking) => {
      const shownText = { trajectories: trajectoriesText(shown, config.lengths), tools };
      const read = (text: string) => readDiscovery({ text, shown, shownText, maxCandidates });
      return answerOf({ ...config, messages: promptOf(config, request, shown), seed, read, asking });
    },
  });

  const proposals = answers.flatMap(({ capabilities }) => capabilities);
  const shownText = { trajectories: trajectoriesText(all, config.lengths), tools };
  const several = answers.filter(({ capabilities }) => capabilities.length > 0).length > 1;
  const kept = several
    ? await mergeProposals(config, { input, proposals, shownText, seed, before: chunks.length })
    : proposals;

  const cite = ({ rollout, message, says }: Step): Citation[] => {
    const key = all.get(rollout)?.key;
    const text = readable(says, all, rollout);
    return key === undefined ? [] : [{ rollout: key, message, says: text, ...(text !== says && { verbatim: says }) }];
  };
  const faults = answers.flatMap((answer) => answer.faults);
  return {
    candidates: kept.map(({ name, definition, lacking, shown }) => {
      const [failed, passed] = [lacking.flatMap(cite), shown.flatMap(cite)];
      return { name, definition, examples: examplesOf(failed, passed, quotable), citations: [...failed, ...passed] };
    }),
    faults: faults.map(({ of, what, steps }) => ({ of, what: readable(what, all), citations: steps.flatMap(cite) })),
  };
}

/** The method's: a candidate is shown by so many trajectories, of both outcomes. */
const EXAMPLES = 4;

function examplesOf(
  failed: readonly Citation[],
  passed: readonly Citation[],
  quotable: ReadonlySet<string>,
): Candidate['examples'] {
  const [ofFailed, ofPassed] = [failed, passed].map((citations) => [
    ...new Set(citations.map(({ rollout }) => rollout).filter((key) => quotable.has(key))),
  ]) as [string[], string[]];
  const chosen = ofFailed.slice(0, Math.max(EXAMPLES / 2, EXAMPLES - ofPassed.length));
  return [...chosen, ...ofPassed.slice(0, EXAMPLES - chosen.length)];
}

interface Merging {
  input: DiscoverInput;
  proposals: readonly Proposal[];
  shownText: ShownText;
  seed: number;
  /** Requests that were made before. */
  before: number;
}

/** In one request, or, where the proposals are too many for one, in rounds. */
async function mergeProposals(config: Config, merging: Merging): Promise<Proposal[]> {
  const { input, proposals, shownText, seed, before } = merging;
  const { maxCandidates } = input.rule;
  const values = (text: string) => ({ proposals: text, maxCandidates: String(maxCandidates) });
  const batches = batched(proposals, roomIn(config, 'merge', values('')));
  const merged = await askAll({
    items: batches,
    step: STEP,
    work: input,
    before,
    ask: (batch, asking) => {
      const messages = config.prompts.render('merge', values(batch.map(proposalText).join('\n\n')));
      const read = (text: string) => readMerged({ text, proposals: batch, shownText, maxCandidates });
      return answerOf({ ...config, messages, seed, read, asking });
    },
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

/** Steps of each outcome that are shown of a proposal; all of them stay its citations. */
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
    const tokens = tokensOf(proposalText(proposal, proposals.length).length) + 1;
    if (tokens > left) {
      batches.push([]);
      left = room;
    }
    batches.at(-1)?.push(proposal);
    left -= tokens;
  }
  return batches;
}
