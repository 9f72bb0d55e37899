/** An analyst: step 1 of the method. Invariant: it sees scored rollouts only, and its findings are a function of its input and its identity. */
import type { SelectionRule } from '../domain/campaign';
import type { Candidate, Discovery, Label, LabelPass } from '../domain/capability';
import type { EnvironmentDescription } from '../domain/environment';
import type { LanguageModelSpec } from '../domain/endpoints';
import type { Identity, Kind, KindSpec } from '../domain/kinds';
import { isSuccess, type ScoredRollout } from '../domain/rollout';
import type { Work } from '../domain/work';
import type { Ledger } from '../llm/model';

export interface DiscoverInput extends Work {
  rollouts: readonly ScoredRollout[];
  /** Keys of rollouts that may be named as examples: the others hold a test task's text. */
  quotable: ReadonlySet<string>;
  description: EnvironmentDescription;
  rule: Pick<SelectionRule, 'maxCandidates'>;
  /** Looks for causes even if no rollout passed. Without successes to compare with, none of them may be selected. */
  failuresAlone?: boolean | undefined;
  seed: number;
  /** For analysts that ask a language model. */
  ledger: Ledger;
}

export interface LabelInput extends Work {
  rollouts: readonly ScoredRollout[];
  description: EnvironmentDescription;
  candidates: readonly Candidate[];
  /** 0-based number of the pass. */
  pass: number;
  seed: number;
  ledger: Ledger;
}

export interface Analyst {
  readonly identity: Identity;
  /** Its discoveries do not depend on the seed, so campaigns with different seeds share them. */
  readonly ignoresSeed?: true;
  /** Why it can't work on a target, or with the campaign's rule, with the fix, before anything is spent. */
  unsuited?(description: EnvironmentDescription, rule: SelectionRule): string | undefined;
  /** `outright`: all candidates are selected and label() is never called. */
  readonly selects: 'by labels' | 'outright';
  /** Number of selected capabilities if it is known before any rollout; `campaign check` uses it for its estimates. */
  readonly selected?: number;
  /** At most `rule.maxCandidates` candidates. */
  discover(input: DiscoverInput): Promise<Discovery>;
  /** One pass over all candidates: per candidate, lists that partition the trajectories it looked at. */
  label(input: LabelInput): Promise<LabelPass>;
}

export interface AnalystKind extends Kind<Analyst | Promise<Analyst>> {
  /** The language model that it asks; absent of a kind that asks none. */
  readonly languageModel?: (spec: KindSpec) => LanguageModelSpec;
  /** The content of one request, for estimates of cost. */
  readonly planned?: (spec: KindSpec) => { chunkTokens: number; labelsPerChunk: number };
}

/** A pass from one label of each trajectory for each capability; where there is no label, the lists are no partition, and the pass is refused. */
export function passFrom(o: {
  attempt: LabelPass['attempt'];
  rollouts: readonly ScoredRollout[];
  /** Names of capabilities. */
  names: readonly string[];
  labelOf: (rollout: ScoredRollout, name: string) => Label | undefined;
}): LabelPass {
  const { attempt, rollouts, names, labelOf } = o;
  const [failed, passed] = [rollouts.filter((one) => !isSuccess(one)), rollouts.filter(isSuccess)];
  const lists = (name: string) => {
    const keys = (label: Label, among: readonly ScoredRollout[]) =>
      among.filter((rollout) => labelOf(rollout, name) === label).map(({ key }) => key);
    return {
      lacking_failed: keys('LACKING', failed),
      present_failed: keys('PRESENT', failed),
      na_failed: keys('NA', failed),
      lacking_passed: keys('LACKING', passed),
      present_passed: keys('PRESENT', passed),
      na_passed: keys('NA', passed),
    };
  };
  return {
    attempt,
    totals: { total_failed: failed.length, total_passed: passed.length },
    labels: Object.fromEntries(names.map((name) => [name, lists(name)])),
  };
}
