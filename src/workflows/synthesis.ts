/** Rounds of synthesis: write or revise, self-test, calibrate, until the environment is within the bands or there is nothing more to try. */
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
  /** Holds the candidate's citations. */
  candidates: ArtifactRef;
  candidate: Candidate;
  /** The other selected capabilities. */
  others: Lacking[];
  /** The base model's rollouts on the train split: user wording and failures for the synthesizer. */
  baseRollouts: ArtifactRef;
}

/** What a rollout breaks with where the module throws or does not keep its contract. */
const MODULE_FAILED = 'BadEnvironment' satisfies FailureType;

/** Why there is no environment to train on. */
type NotTrained = Pick<Required<CapabilityResult>, 'reason'>;

/** Every round is put into `rounds` as it ends. */
export async function synthesize(
  input: SynthesisInput,
  rounds: SynthesisRound[],
  status: ChildStatus,
): Promise<{ module: ArtifactRef } | NotTrained> {
  const { maxRounds } = input.campaign.calibration;
  let edited: ArtifactRef | undefined;
  for (let round = 1; round <= maxRounds || edited; round++) {
    const rounded = `round ${round} of ${Math.max(round, maxRounds)}`;
    const show = (phase: ChildProgress['phase']) => status.set(phase, rounded, round);
    show('synthesize');
    const own = edited;
    edited = undefined;
    const written = own ? { module: own } : await write(input, rounds);
    if ('cannot' in written) return endedWithout(rounds, written.cannot);
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
    const broke = await brokeInPlay(input, record, status);
    if (broke !== undefined) record.selfTest = { ...selfTest, passed: false, findings: [...selfTest.findings, broke] };
    if (broke !== undefined || !isCalibrated(record)) continue;
    // Whoever edited it has approved it.
    const verdict = own ? 'take' : await environmentVerdict({ ...input, rounds, status });
    if (verdict === 'take') return { module };
    if (verdict === 'give up') break;
    edited = verdict.edited;
  }
  return endedWithout(rounds);
}

/** Calibrates. A module that fails in play, where its self-test saw nothing, would fail its training too: what it is told of it. */
async function brokeInPlay(
  input: SynthesisInput,
  record: SynthesisRound,
  status: ChildStatus,
): Promise<string | undefined> {
  try {
    await calibrate(input, record, status);
  } catch (error) {
    const broke = failedWith(error, MODULE_FAILED);
    if (broke === undefined) throw error;
    return `in play, by the agent: ${broke}`;
  }
  const broken = record.calibrationRollouts?.errors[MODULE_FAILED] ?? 0;
  return broken > 0 ? `in play, by the agent: ${broken} attempts ended with ${MODULE_FAILED}` : undefined;
}

/** The next version of the module; or why the synthesizer has none. */
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
    // An answer that can't be used would be the same again: equal questions have one reply.
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

/** How it ends without a version to train on: by the bands that the last one missed, by its rejection, or by why it came to neither. */
function endedWithout(rounds: readonly SynthesisRound[], cannot?: string): NotTrained {
  const calibrated = rounds.findLast(({ calibration }) => calibration);
  const rejected = calibrated && rejectionText(calibrated);
  const against = [...(calibrated?.calibration?.reasons ?? []), ...(rejected === undefined ? [] : [rejected])];
  const found = against.length > 0 ? against : (rounds.at(-1)?.selfTest.findings ?? []);
  return { reason: [...found, ...(cannot === undefined ? [] : [cannot])].join('; ') || 'no round was run' };
}

/** Puts what it finds into the round's record. */
export async function calibrate(input: SynthesisInput, record: SynthesisRound, status: ChildStatus): Promise<void> {
  const { calibration: bands, evaluation } = input.campaign;
  record.calibrationRollouts = await rolledOut(input, record);
  const { ref: rollouts } = record.calibrationRollouts;
  record.calibration = await control(input.campaign, 'hold the rewards against the bands').calibrate({
    bands,
    rollouts,
    confidence: evaluation.confidence,
  });
  status.calibrated(percent(record.calibration.successRate));
}

function rolledOut(
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
