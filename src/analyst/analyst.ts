/** An analyst: step 1 of the method. Invariant: it sees scored rollouts only; what it finds is a function of its input and its identity. */
import { digest } from '../artifacts/hash';
import type { ArtifactRef } from '../domain/artifacts';
import type { SelectionRule } from '../domain/campaign';
import type { Candidate, Discovery, LabelPass } from '../domain/capability';
import type { EnvironmentDescription } from '../domain/environment';
import { OutsideFailure } from '../domain/failures';
import type { Identity, Kind } from '../domain/kinds';
import type { ScoredRollout } from '../domain/rollout';
import { checkPartition } from '../domain/selection';
import type { Work } from '../domain/work';
import type { Ledger } from '../language-model/types';

export interface DiscoverInput extends Work {
  rollouts: readonly ScoredRollout[];
  /** Keys of rollouts that may be named as examples: the others hold a test task's text. */
  quotable: ReadonlySet<string>;
  description: EnvironmentDescription;
  rule: Pick<SelectionRule, 'maxCandidates'>;
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
  /** What it discovers is the same with any seed, and so kept for all of them. */
  readonly ignoresSeed?: true;
  /** Why it can't work on a target, or with the campaign's rule, with the fix, before anything is spent. */
  unsuited?(description: EnvironmentDescription, rule: SelectionRule): string | undefined;
  /** `outright`: all candidates are selected as they are, and label() is never called. */
  readonly selects: 'by labels' | 'outright';
  /** How many capabilities are selected, where that is known before any rollout: `campaign plan` counts with it. */
  readonly selected?: number;
  /** At most `rule.maxCandidates` candidates. */
  discover(input: DiscoverInput): Promise<Discovery>;
  /** One pass over all candidates: per candidate, lists that partition the trajectories it looked at. */
  label(input: LabelInput): Promise<LabelPass>;
}

/** What is found of the same rollouts is kept under one key, whoever asks: a campaign finds what `campaign analyse` paid for. */
interface FoundIn {
  analyst: Pick<Analyst, 'identity' | 'ignoresSeed'>;
  rollouts: ArtifactRef;
  /** Of the environment. */
  version: string;
  seed: number;
}

export const candidatesKey = ({
  analyst,
  rollouts,
  version,
  seed,
  rule,
}: FoundIn & Pick<DiscoverInput, 'rule'>): string =>
  `candidates/${digest({
    ...{ form: '2', maker: analyst.identity, ref: rollouts, version, maxCandidates: rule.maxCandidates },
    ...(!analyst.ignoresSeed && { seed }),
  })}`;

export const labelsKey = (o: FoundIn & { candidates: ArtifactRef; pass: number }): string => {
  const { analyst, rollouts, candidates: ref, version, pass, seed } = o;
  return `labels/${digest({ maker: analyst.identity, rollouts, ref, version, pass, seed })}`;
};

/** A pass is used as it is or not at all. */
export function checkedPass(pass: LabelPass, candidates: readonly Candidate[]): LabelPass {
  const [problem] = checkPartition(pass);
  if (problem !== undefined) throw new OutsideFailure('LabelsInvalid', problem);
  const [wanted, labeled] = [candidates.map(({ name }) => name), Object.keys(pass.labels)].map((names) =>
    names.sort().join(', '),
  );
  if (wanted !== labeled)
    throw new OutsideFailure('LabelsInvalid', `the pass labels ${labeled}; the candidates are ${wanted}`);
  return pass;
}

export type AnalystKind = Kind<Analyst | Promise<Analyst>>;
