/**
 * The selection in the report: candidates with statistics and the steps that show them, and failures that are not the agent's. Invariants: a
 * quote is the text of the artifact; a trajectory counts for a labeling pass only if that pass looked at it; nothing is made up for a
 * trajectory that is not among the labeled ones.
 */
import { readJson, type ArtifactStore } from '../../store/store';
import { decisionText } from '../../domain/approval';
import type { ArtifactRef, Figure } from '../../domain/artifacts';
import type { SelectionRule } from '../../domain/campaign';
import {
  beginningOf,
  type Candidate,
  discoverySchema,
  type LabelPass,
  labelPassSchema,
  selectionSchema,
} from '../../domain/capability';
import type { SelectionResult } from '../../domain/results';
import { isSuccess, type Rollout, type ScoredRollout } from '../../domain/rollout';
import { lackingIn, readingsOf } from '../../domain/selection';
import { readRollouts } from '../../rollout/read';
import type { ReportedCandidate, ReportedCitation, ReportedFaults, ReportedSelection } from '../capability-model';
import { countFigure, slug } from './figures';
import { quotedMessage } from './quotes';

/** Trajectories that are shown as examples of faults, and of a selected capability. */
const SHOWN_FAULTS = 8;
const EXAMPLES = 3;

type Step = Pick<ReportedCitation, 'rollout' | 'message' | 'says' | 'votes'> & {
  /** The message is the last answer of the agent. */
  isEnd?: true;
};

export async function selectionOf(o: {
  store: ArtifactStore;
  result: SelectionResult;
  /** The batch that was labeled. */
  rollouts: ArtifactRef;
  /** Its content, where that is at hand. */
  records?: Iterable<Rollout>;
  rule?: SelectionRule;
}): Promise<ReportedSelection> {
  const { store, result, rollouts, rule } = o;
  const { capabilities, reason } = await readJson(store, result.selection, selectionSchema);
  const discovery = await readJson(store, result.candidates, discoverySchema);
  const passes = await Promise.all(result.labels.map((ref) => readJson(store, ref, labelPassSchema)));
  const readings = readingsOf(passes);
  const selected = new Set(result.selected.map(({ candidate }) => candidate.name));

  const stepsOf = ({ name, citations = [], examples }: Candidate): Step[] => {
    if (!selected.has(name)) return citations;
    const evidence = capabilities.find((one) => one.name === name)?.evidence ?? [];
    const lacking = evidence.flatMap((rollout): Step[] => {
      const own = readings.get(name)?.get(rollout) ?? [];
      const { message, says, lacking: votes } = lackingIn(own);
      return says === undefined
        ? []
        : [{ rollout, message, says, votes: `lacking in ${votes} of ${own.length} passes` }];
    });
    if (citations.length + lacking.length > 0) return [...citations, ...lacking];
    const shown = evidence.length > 0 ? evidence : examples;
    return shown.slice(0, EXAMPLES).map((rollout) => ({ rollout, isEnd: true, says: 'how it ends' }));
  };
  const steps = new Map(discovery.candidates.map((candidate) => [candidate.name, stepsOf(candidate)]));
  const faulty = faultySteps(passes);
  const found = discovery.faults;
  const quoted = [...[...steps.values()].flat(), ...found.flatMap(({ citations }) => citations), ...faulty];
  const { failed, passed, cite } = await citing(o.records ?? readRollouts({ store, ref: rollouts }), quoted);

  const labelings = result.labels.length + result.failedPasses.length;
  const candidates = discovery.candidates.map((candidate): ReportedCandidate => {
    const { name, definition } = candidate;
    const at = `selection.${slug(name)}`;
    const own = passes.length > 0 ? capabilities.find((one) => one.name === name) : undefined;
    const figure = (of: 'coverage' | 'delta', unit: Figure['unit']): Figure | undefined =>
      own && {
        id: `${at}.${of}`,
        value: own[of].mean,
        std: own[of].std,
        n: own.passes,
        unit,
        from: [result.selection],
      };
    return {
      ...{ name, definition, votes: own?.votes ?? 0, passes: labelings, selected: selected.has(name) },
      coverage: figure('coverage', 'fraction'),
      delta: figure('delta', 'difference'),
      citations: steps.get(name)!.map(cite),
    };
  });
  const place = new Map(capabilities.map(({ name }, n) => [name, n]));
  const count = (id: string, value: number, from: ArtifactRef[], n: number) =>
    countFigure(`selection.${id}`, value, from, n);
  const faults = (of: 'environment' | 'user') =>
    count(`faults.${of}`, faulty.filter((one) => one.of === of).length, result.labels, failed);
  const reported: ReportedFaults = {
    found: found.map((fault) => ({ ...fault, citations: fault.citations.map(cite) })),
    counts: passes.length > 0 ? { environment: faults('environment'), user: faults('user') } : undefined,
    examples: faulty.slice(0, SHOWN_FAULTS).map(cite),
  };
  return {
    rule,
    failed: count('failed', failed, [rollouts], failed + passed),
    passed: count('passed', passed, [rollouts], failed + passed),
    candidates: candidates.sort((a, b) => (place.get(a.name) ?? Infinity) - (place.get(b.name) ?? Infinity)),
    passes: labelings,
    failedPasses: result.failedPasses,
    reason,
    decision: result.decision && decisionText(result.decision),
    faults: found.length + faulty.length > 0 ? reported : undefined,
    from: [result.selection],
  };
}

/** Counts the labeled rollouts; `cite` adds task, outcome and the messages around it to one of the steps. */
async function citing(rollouts: AsyncIterable<Rollout> | Iterable<Rollout>, steps: readonly Step[]) {
  const keys = new Set(steps.map(({ rollout }) => rollout));
  const counts = { failed: 0, passed: 0 };
  const quoted = new Map<string, ScoredRollout>();
  const outcomeOf = (rollout: ScoredRollout) => (isSuccess(rollout) ? 'passed' : 'failed');
  for await (const rollout of rollouts) {
    if (rollout.status !== 'scored') continue;
    counts[outcomeOf(rollout)] += 1;
    if (keys.has(rollout.key)) quoted.set(rollout.key, rollout);
  }
  const cite = ({ rollout, message: cited, says, votes, isEnd }: Step): ReportedCitation => {
    const known = quoted.get(rollout);
    if (!known) return { rollout, message: cited, says, votes, context: [] };
    const { task, attempt, messages } = known;
    const message = isEnd ? messages.findLastIndex(({ role }) => role === 'assistant') : cited;
    const first = Math.max(0, (message ?? 0) - 1);
    const context =
      message === undefined || !messages[message]
        ? []
        : messages.slice(first, message + 2).map((one, n) => quotedMessage(one, first + n));
    return { rollout, task, attempt, outcome: outcomeOf(known), message, says, votes, context };
  };
  return { ...counts, cite };
}

/** Failed trajectories that the passes attribute to the environment or the user more often than to the agent, sorted as text. */
function faultySteps(passes: readonly LabelPass[]): (Step & { of: 'environment' | 'user' })[] {
  const keys = new Set(passes.flatMap(({ failures = {} }) => Object.keys(failures)));
  return [...keys].sort().flatMap((rollout) => {
    const origins = passes.flatMap(({ failures }) => failures?.[rollout] ?? []);
    const begins = beginningOf(origins);
    if (!begins || begins.of === 'agent') return [];
    const { of, message, reason, blaming } = begins;
    return [{ rollout, of, message, says: reason, votes: `${of} in ${blaming} of ${origins.length} passes` }];
  });
}
