/**
 * Calibration of one version of an environment with the policy that its training starts from. Invariant: hints are tried only where the rewards without them missed the
 * bands for want of success, and what both came to is kept.
 */
import { wantsHints, type CalibrationReport } from '../domain/calibration';
import { sandboxSpec } from '../domain/environment-spec';
import type { RolloutSummary, SynthesisRound } from '../domain/results';
import type { Hints } from '../domain/rollout';
import { CALIBRATION_SEEDS } from '../sandbox/seeds';
import type { ChildStatus } from './child-status';
import { control, rollOut } from './steps';
import type { SynthesisInput } from './synthesis';

/** Puts what it finds into the round's record. */
export async function calibrate(input: SynthesisInput, record: SynthesisRound, status: ChildStatus): Promise<void> {
  const { calibration: bands, evaluation } = input.campaign;
  const judged = (rollouts: RolloutSummary): Promise<CalibrationReport> =>
    status.gate.step(() =>
      control(input.campaign, 'hold the rewards against the bands').calibrate({
        bands,
        rollouts: rollouts.ref,
        confidence: evaluation.confidence,
      }),
    );
  record.calibrationRollouts = await status.gate.step(() => rolledOut(input, record));
  record.calibration = await judged(record.calibrationRollouts);
  if (!record.selfTest.hints || bands.hintShare === 0 || !wantsHints(record.calibration, bands)) return;
  const hints = { share: bands.hintShare };
  const calibrationRollouts = await status.gate.step(() => rolledOut(input, record, hints));
  record.withHints = { ...hints, calibrationRollouts, calibration: await judged(calibrationRollouts) };
}

function rolledOut(
  { campaign, candidate, start }: SynthesisInput,
  { round, module }: SynthesisRound,
  hints?: Hints,
): Promise<RolloutSummary> {
  const { calibration: bands } = campaign;
  return rollOut(campaign, {
    purpose: 'calibration',
    title: `${candidate.name}: calibration, round ${round}${hints ? ', with hints' : ''}`,
    environment: sandboxSpec(module),
    policy: start,
    tasks: { kind: 'seeds', from: CALIBRATION_SEEDS, count: bands.seeds },
    attempts: bands.rolloutsPerSeed,
    ...(hints && { hints }),
    sampling: { ...campaign.rollouts.sampling, temperature: bands.temperature },
    maxSteps: campaign.rollouts.maxSteps,
  });
}
