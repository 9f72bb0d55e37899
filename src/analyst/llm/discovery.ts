/**
 * Discovery finds capabilities that failures lack and successes show, and failures that are not the agent's. If the rollouts fill several requests, a model
 * merges equal proposals. Only quotable rollouts become examples, and the order of rollouts and replies changes nothing. A labeling pass labels all
 * trajectories or fails; passes send equal bytes and differ by their seed alone.
 */
import { seedOf } from '../../store/hash';
import type { Candidate, Citation, Discovery, LabelPass } from '../../domain/capability';
import { tokensOf } from '../../domain/endpoints';
import { badInput } from '../../domain/failures';
import { isSuccess } from '../../domain/rollout';
import { cut, LENGTHS } from '../../domain/transcript';
import { renderPrompt } from '../../llm/answer';
import { type DiscoverInput, type LabelInput, passFrom } from '../analyst';
import { type Proposal, readDiscovery, readMerged, type Step, type Labeled, readLabels } from './answers';
import type { Shown } from './chunks';
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
  labelChunks,
  labelRequest,
} from './requests';

export async function discover(config: Config, input: DiscoverInput): Promise<Discovery> {
  const { rollouts, quotable, description } = input;
  // Without both outcomes there is nothing to contrast.
  if (!(rollouts.some(isSuccess) || input.failuresAlone) || rollouts.every(isSuccess))
    return { candidates: [], faults: [] };
  const { maxCandidates } = input.rule;
  const all = shownOf(rollouts);
  const tools = description.tools.map(({ name }) => name);
  const limitsOf = (shown: Shown) => ({
    shownText: { trajectories: trajectoriesText(shown, config.lengths), tools },
    maxCandidates,
  });
  const step = { config, step: 'discovery', work: input, seed: seedOf(`llm discovery ${input.seed}`) };

  const request = discoveryRequest(input);
  const chunks = discoveryChunks(config, request, all);
  const answers = await askAll({
    ...step,
    items: chunks,
    messages: (shown) => promptOf(config, request, shown),
    read: (text, shown) => readDiscovery({ ...limitsOf(shown), text, shown }),
  });

  const proposals = answers.flatMap(({ capabilities }) => capabilities);
  const several = answers.filter(({ capabilities }) => capabilities.length > 0).length > 1;
  const capabilities = several ? await merge() : proposals;

  async function merge(): Promise<Proposal[]> {
    const values = (text: string) => ({ proposals: text, maxCandidates: String(maxCandidates) });
    const text = proposals.map(proposalText).join('\n\n');
    if (tokensOf(text.length) > roomIn(config, 'merge', values('')))
      throw badInput(
        `analyst.contextTokens is ${config.contextTokens}: ${proposals.length} proposals don't fit into one request; ` +
          'raise it (and take a model that has them), or raise chunkTokens, so that there are fewer chunks',
      );
    const merged = await askAll({
      ...step,
      items: [text],
      messages: () => renderPrompt('merge', values(text)),
      read: (text) => readMerged({ ...limitsOf(all), text, proposals }),
    });
    return merged.flat();
  }

  const cite = ({ rollout, message, says }: Step): Citation[] => {
    const key = all.get(rollout)?.key;
    const text = readable(says, all, rollout);
    return key === undefined ? [] : [{ rollout: key, message, says: text, ...(text !== says && { verbatim: says }) }];
  };
  return {
    candidates: capabilities.map(({ name, definition, lacking, shown }) => {
      const [failed, passed] = [lacking.flatMap(cite), shown.flatMap(cite)];
      return { name, definition, examples: examplesOf(failed, passed, quotable), citations: [...failed, ...passed] };
    }),
    faults: answers
      .flatMap(({ faults }) => faults)
      .map(({ of, what, steps }) => ({ of, what: readable(what, all), citations: steps.flatMap(cite) })),
  };
}

/** Number of trajectories of both outcomes that illustrate a candidate, as in the method. */
const EXAMPLES = 4;

function examplesOf(
  failed: readonly Citation[],
  passed: readonly Citation[],
  quotable: ReadonlySet<string>,
): Candidate['examples'] {
  const keysOf = (citations: readonly Citation[]) => [
    ...new Set(citations.map(({ rollout }) => rollout).filter((key) => quotable.has(key))),
  ];
  const [ofFailed, ofPassed] = [keysOf(failed), keysOf(passed)];
  const chosen = ofFailed.slice(0, Math.max(EXAMPLES / 2, EXAMPLES - ofPassed.length));
  return [...chosen, ...ofPassed.slice(0, EXAMPLES - chosen.length)];
}

/** Steps of each outcome that are shown with a proposal; all steps stay in its citations. */
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

export async function label(config: Config, input: LabelInput): Promise<LabelPass> {
  const names = input.candidates.map(({ name }) => name);
  const all = shownOf(input.rollouts);
  const request = labelRequest(input);
  const answers = await askAll({
    config,
    step: 'labels',
    work: input,
    seed: seedOf(`llm labels ${input.seed} ${input.pass}`),
    items: names.length > 0 ? labelChunks(config, request, all) : [],
    messages: (shown) => promptOf(config, request, shown),
    read: (text, shown) => readLabels({ text, shown, names }),
  });

  const labeled = new Map(answers.flatMap((answer) => [...answer]));
  const byKey = new Map([...all].map(([id, { key }]) => [key, { id, ...labeled.get(id) }]));
  /** Collects one value of every trajectory that has it, by rollout key, with a readable reason. */
  const reasoned = <Value extends { reason: string }>(of: (one: Partial<Labeled>) => Value | undefined) =>
    Object.fromEntries(
      [...byKey].flatMap(([key, one]) => {
        const value = of(one);
        return value ? [[key, { ...value, reason: readable(value.reason, all, one.id) }]] : [];
      }),
    );
  return {
    ...passFrom({
      attempt: input.pass,
      rollouts: [...all.values()].sort((a, b) => (a.key < b.key ? -1 : 1)),
      names,
      labelOf({ key }, name) {
        const { failure, labels } = byKey.get(key) ?? {};
        // A failure that is not the agent's gives no label for any capability.
        return failure && failure.of !== 'agent' ? 'NA' : labels?.get(name)?.label;
      },
    }),
    reasons: Object.fromEntries(names.map((name) => [name, reasoned(({ labels }) => labels?.get(name)?.why)])),
    failures: reasoned(({ failure }) => failure),
  };
}
