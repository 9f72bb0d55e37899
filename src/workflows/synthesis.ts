/** Runs rounds of synthesis (write or revise, self-test, calibrate) until an environment is accepted or no round is left. */
import type { ArtifactRef } from '../domain/artifacts';
import { isCalibrated, type SynthesisRound } from '../domain/calibration';
import type { Campaign } from '../domain/campaign';
import type { Candidate, Lacking } from '../domain/capability';
import type { FailureType } from '../domain/failures';
import { sandboxSpec } from '../domain/kinds';
import type { CapabilityResult, Prepared } from '../domain/results';
import type { RolloutSummary } from '../domain/rollout';
import { CALIBRATION_SEEDS } from '../domain/seeds';
import { environmentVerdict, rejectionText } from './approval';
import { failedWith } from './failures';
import type { ChildProgress } from './messages';
import { type ChildStatus, percent } from './status';
import { basePolicy, control, longControl, rollOut, seeds } from './steps';

export interface SynthesisInput {
  campaign: Campaign;
  prepared: Prepared;
  /** The analyst's candidates, with the citations of this one. */
  candidates: ArtifactRef;
  candidate: Candidate;
  /** The other selected capabilities. */
  others: Lacking[];
  /** Rollouts of the base model on the train split, from which the synthesizer takes users' wording and failures. */
  baseRollouts: ArtifactRef;
}

/** The failure of a rollout whose module throws or does not keep its contract. */
const MODULE_FAILED = 'BadEnvironment' satisfies FailureType;

/** The reason for a capability without an environment to train on. */
type NotTrained = Pick<Required<CapabilityResult>, 'reason'>;

/** Returns the accepted module, or why there is none. Appends each round to `rounds`. */
export async function synthesize(
  input: SynthesisInput,
  rounds: SynthesisRound[],
  status: ChildStatus,
): Promise<{ module: ArtifactRef } | NotTrained> {
  const { maxRounds } = input.campaign.calibration;
  let edited: ArtifactRef | undefined;
  for (let round = 1; round <= maxRounds || edited; round++) {
    const roundLabel = `round ${round} of ${Math.max(round, maxRounds)}`;
    const show = (phase: ChildProgress['phase']) => status.set(phase, roundLabel, round);
    show('synthesize');
    const own = edited;
    edited = undefined;
    const written = own ? { module: own } : await write(input, rounds);
    if ('cannot' in written) return whyNotTrained(rounds, written.cannot);
    show('self-test');
    const { module } = written;
    const { name: campaign, budget, target: unlike } = input.campaign;
    const selfTest = await control(input.campaign, 'self-test the environment').selfTest({
      module,
      unlike,
      campaign,
      budget,
    });
    const record: SynthesisRound = { round, module, selfTest };
    rounds.push(record);
    if (!selfTest.passed) continue;
    show('calibrate');
    const finding = await calibrateAndCheck(input, record, status);
    if (finding !== undefined)
      record.selfTest = { ...selfTest, passed: false, findings: [...selfTest.findings, finding] };
    if (finding !== undefined || !isCalibrated(record)) continue;
    // A person who edited the module has approved it.
    const verdict = own ? 'take' : await environmentVerdict({ ...input, rounds, status });
    if (verdict === 'take') return { module };
    if (verdict === 'give up') break;
    edited = verdict.edited;
  }
  return whyNotTrained(rounds);
}

/** Calibrates the environment. Returns a finding for the synthesizer if the module failed in rollouts: its training would fail, too. */
async function calibrateAndCheck(
  input: SynthesisInput,
  record: SynthesisRound,
  status: ChildStatus,
): Promise<string | undefined> {
  try {
    await calibrate(input, record, status);
  } catch (error) {
    const broke = failedWith(error, MODULE_FAILED);
    if (broke === undefined) throw error;
    return `in calibration rollouts: ${broke}`;
  }
  const broken = record.calibrationRollouts?.errors[MODULE_FAILED] ?? 0;
  return broken > 0 ? `in calibration rollouts: ${broken} attempts ended with ${MODULE_FAILED}` : undefined;
}

/** Returns the next version of the module, or why the synthesizer has none. */
async function write(
  { campaign, candidates, candidate, others, baseRollouts }: SynthesisInput,
  rounds: readonly SynthesisRound[],
): Promise<{ module: ArtifactRef } | { cannot: string }> {
  const { name, budget, target, synthesizer, seed } = campaign;
  const round = rounds.length + 1;
  const last = rounds.at(-1);
  try {
    const module = await longControl(campaign, `synthesize an environment, round ${round}`).synthesize({
      campaign: name,
      budget,
      target,
      synthesizer,
      rollouts: baseRollouts,
      candidates,
      candidate,
      others,
      round,
      seed,
      ...(last && { previous: previousOf(last) }),
    });
    return { module };
  } catch (error) {
    // The synthesizer would get the same unusable answer again, since equal questions have one reply.
    const invalid = failedWith(error, 'AnswerInvalid');
    const spent = failedWith(error, 'BudgetSpent');
    const cannot = failedWith(error, 'CannotSynthesize') ?? invalid ?? (spent && `budget spent: ${spent}`);
    if (cannot === undefined) throw error;
    return { cannot };
  }
}

/** Returns the version to revise, with what its round found. */
function previousOf({ module, selfTest, calibration, calibrationRollouts, decision }: SynthesisRound) {
  return {
    module,
    findings: selfTest.findings,
    ...(decision?.kind === 'reject' && { rejection: decision.reason }),
    ...(calibration && { calibration }),
    ...(calibrationRollouts && { attempts: calibrationRollouts.ref }),
  };
}

/** Returns the reason why no version was accepted: the missed bands and the rejection of the last calibrated one, else the last findings. */
function whyNotTrained(rounds: readonly SynthesisRound[], cannot?: string): NotTrained {
  const calibrated = rounds.findLast(({ calibration }) => calibration);
  const rejected = calibrated && rejectionText(calibrated);
  const against = [...(calibrated?.calibration?.reasons ?? []), ...(rejected === undefined ? [] : [rejected])];
  const found = against.length > 0 ? against : (rounds.at(-1)?.selfTest.findings ?? []);
  return { reason: [...found, ...(cannot === undefined ? [] : [cannot])].join('; ') || 'no round was run' };
}

/** Records the calibration and its rollouts in the round. */
export async function calibrate(input: SynthesisInput, record: SynthesisRound, status: ChildStatus): Promise<void> {
  const { calibration: bands, evaluation } = input.campaign;
  record.calibrationRollouts = await calibrationRollouts(input, record);
  const { ref: rollouts } = record.calibrationRollouts;
  record.calibration = await control(input.campaign, 'check calibration thresholds').calibrate({
    bands,
    rollouts,
    confidence: evaluation.confidence,
  });
  status.calibrated(percent(record.calibration.successRate));
}

function calibrationRollouts(
  { campaign, prepared, candidate }: SynthesisInput,
  { round, module }: SynthesisRound,
): Promise<RolloutSummary> {
  const { calibration: bands } = campaign;
  return rollOut(campaign, {
    purpose: 'calibration',
    title: `${candidate.name}: calibration, round ${round}`,
    environment: sandboxSpec(module),
    policy: basePolicy(prepared.base),
    tasks: seeds(campaign, { from: CALIBRATION_SEEDS, count: bands.seeds }),
    attempts: bands.rolloutsPerSeed,
    sampling: { ...campaign.rollouts.sampling, temperature: bands.temperature },
    maxSteps: campaign.rollouts.maxSteps,
  });
}
