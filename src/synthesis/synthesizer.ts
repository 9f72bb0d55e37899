/** A synthesizer writes the environment of one capability (step 2 of the method); others test and calibrate what it writes. */
import type { RoundFeedback } from '../domain/calibration';
import type { Candidate, Lacking } from '../domain/capability';
import type { EnvironmentDescription } from '../domain/environment';
import { OutsideFailure } from '../domain/failures';
import type { LanguageModelSpec } from '../domain/endpoints';
import type { Identity, Kind, KindSpec } from '../domain/kinds';
import type { ScoredRollout } from '../domain/rollout';
import type { Work } from '../domain/work';
import type { Ledger } from '../llm/model';

export interface WriteInput extends Work {
  candidate: Candidate;
  /** The other selected capabilities: no instance should need one of them. */
  others: readonly Lacking[];
  description: EnvironmentDescription;
  rollouts: readonly ScoredRollout[];
  /** messageHash() (sandbox/leakage.ts) of the first user messages of the target's test tasks: none may come up. */
  forbidden: readonly string[];
  seed: number;
  ledger: Ledger;
}

export interface ReviseInput extends WriteInput {
  round: number;
  /** The previous round: its module, the findings, and the rollouts that its last calibration judged. */
  previous: RoundFeedback & { source: string; attempts?: readonly ScoredRollout[] };
}

export interface SynthesizedModule {
  source: string;
  /** Why training here should transfer; one or two sentences. */
  rationale: string;
}

/** Error for the case that no (further) module can be written; `why` gives the reason and the fix. */
export const cannotSynthesize = (why: string): OutsideFailure => new OutsideFailure('CannotSynthesize', why);

/** `write` and `revise` throw an OutsideFailure `CannotSynthesize` if no (further) module can be written. */
export interface Synthesizer {
  readonly identity: Identity;
  /** Its modules do not depend on the seed, so campaigns with different seeds share them. */
  readonly ignoresSeed?: true;
  /** Why it can't work on a target, with the fix, before anything is spent. */
  unsuited?(description: EnvironmentDescription): string | undefined | Promise<string | undefined>;
  write(input: WriteInput): Promise<SynthesizedModule>;
  revise(input: ReviseInput): Promise<SynthesizedModule>;
}

export interface SynthesizerKind extends Kind<Synthesizer | Promise<Synthesizer>> {
  /** The language model that it asks; absent of a kind that asks none. */
  readonly languageModel?: (spec: KindSpec) => LanguageModelSpec;
  /** Returns the number of attacks on each module, for `campaign check`. */
  readonly planned?: (spec: KindSpec) => { attacks: number };
}
