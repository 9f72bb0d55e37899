/** analysis.json from what was found. Invariant: conversations are called as in the user's files, everywhere. */
import type { Identity } from '../../domain/kinds';
import type { Budget, Spent } from '../../domain/endpoints';
import { agreementOf } from '../../domain/selection';
import type { SelectionRule } from '../../domain/campaign';
import type { Citation } from '../../domain/capability';
import { isSuccess, type ScoredRollout } from '../../domain/rollout';
import type { Loaded } from './conversations';
import { excerpt } from './excerpt';
import { failuresOf } from './failures';
import type { AnalysedCapability, Analysis, Cited } from './result';
import { majority, readingsOf, type Readings } from './tally';
import type { Found } from './work';

export interface BuildInput {
  name: string;
  files: readonly string[];
  /** Its kind and version, and the model that it asks. */
  analyst: Pick<Identity, 'kind' | 'version'> & { model: string };
  loaded: Loaded;
  rule: SelectionRule;
  found: Found;
  budget: Budget;
  spent: readonly Spent[];
}

export function buildAnalysis(input: BuildInput): Analysis {
  const { name, files, analyst, loaded, rule, found, budget, spent } = input;
  const { rollouts, ids, counts, notes } = loaded;
  const { passes, failedPasses, selection, discovery } = found;
  const readings = readingsOf(passes);
  const cited = citations(loaded);
  return {
    name,
    madeAt: new Date().toISOString(),
    files: [...files],
    analyst: { kind: analyst.kind, version: analyst.version, model: analyst.model },
    conversations: counts,
    notes,
    rule,
    passes: passes.length,
    failedPasses,
    ...(selection.reason !== undefined && { reason: selection.reason }),
    capabilities: capabilitiesOf({ found, loaded, readings, cited }),
    failures: failuresOf({ rollouts, ids, passes, readings }),
    faults: discovery.faults.map(({ of, what, citations: steps }) => ({ of, what, citations: cited(steps) })),
    budget,
    spent: [...spent],
  };
}

type CitedOf = (citations: readonly Citation[]) => Cited[];

/** What the analyst cites, as the user's files call it; a step that no conversation has is left out. */
function citations({ rollouts, ids }: Pick<Loaded, 'rollouts' | 'ids'>): CitedOf {
  const byKey = new Map(rollouts.map((rollout): [string, ScoredRollout] => [rollout.key, rollout]));
  return (steps) =>
    steps.flatMap(({ rollout, message, says }) => {
      const found = byKey.get(rollout);
      if (!found || message >= found.messages.length) return [];
      return [
        {
          conversation: ids.get(rollout) ?? rollout,
          outcome: isSuccess(found) ? 'passed' : 'failed',
          message,
          says,
          context: excerpt({ messages: found.messages, around: message }),
        },
      ];
    });
}

/** In the selection's order. */
function capabilitiesOf(o: { found: Found; loaded: Loaded; readings: Readings; cited: CitedOf }): AnalysedCapability[] {
  const { found, loaded, readings, cited } = o;
  const { discovery, selection, passes } = found;
  const agreement = agreementOf(passes);
  return selection.capabilities.map(({ name, votes, passes: of, coverage, delta, selected }) => {
    const candidate = discovery.candidates.find((one) => one.name === name);
    const alpha = agreement[name]?.alpha;
    const lacking = loaded.rollouts.filter((rollout) => {
      const read = readings.get(name)?.get(rollout.key);
      return !isSuccess(rollout) && read !== undefined && majority(read) === 'LACKING';
    });
    return {
      name,
      definition: candidate?.definition ?? '',
      ...{ selected, votes, passes: of, coverage, delta },
      ...(alpha !== undefined && { agreement: alpha }),
      lacking: lacking.map(({ key }) => loaded.ids.get(key) ?? key),
      citations: cited(candidate?.citations ?? []),
    };
  });
}
