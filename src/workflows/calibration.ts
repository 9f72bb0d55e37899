/**
 * Calibration of one version of an environment with the policy that its training starts from. Invariant: hints are tried only where the rewards
 * without them missed the bands for want of success, and what each calibration came to is kept.
 */
import { type CalibrationReport, type SynthesisRound, wantsAid } from '../domain/calibration';
import { sandboxSpec } from '../domain/kinds';
import type { RolloutSummary } from '../domain/rollout';
import { CALIBRATION_SEEDS } from '../sandbox/seeds';
import { percent, type ChildStatus } from './child-status';
import { control, rollOut, seeds } from './steps';
import type { SynthesisInput } from './synthesis';

/** Puts what it finds into the round's record. */
export async function calibrate(input: SynthesisInput, record: SynthesisRound, status: ChildStatus): Promise<void> {
  const { calibration: bands, evaluation } = input.campaign;
  const judged = async (rollouts: RolloutSummary, withHints: string): Promise<CalibrationReport> => {
    const report = await status.gate.step(() =>
      control(input.campaign, 'hold the rewards against the bands').calibrate({
        bands,
        rollouts: rollouts.ref,
        confidence: evaluation.confidence,
      }),
    );
    status.calibrated(`${withHints}${percent(report.successRate)}`);
    return report;
  };
  record.calibrationRollouts = await status.gate.step(() => rolledOut(input, record));
  record.calibration = await judged(record.calibrationRollouts, '');
  const { hintShare: hints } = bands;
  if (!record.selfTest.hints || hints === 0 || !wantsAid(record.calibration, bands)) return;
  const calibrationRollouts = await status.gate.step(() => rolledOut(input, record, hints));
  record.aided = [{ hints, calibrationRollouts, calibration: await judged(calibrationRollouts, 'with hints ') }];
}

function rolledOut(
  { campaign, candidate, start }: SynthesisInput,
  { round, module }: SynthesisRound,
  hints?: number,
): Promise<RolloutSummary> {
  const { calibration: bands } = campaign;
  return rollOut(campaign, {
    purpose: 'calibration',
    title: `${candidate.name}: calibration, round ${round}${hints === undefined ? '' : ', with hints'}`,
    environment: sandboxSpec(module),
    policy: start,
    tasks: seeds(campaign, { from: CALIBRATION_SEEDS, count: bands.seeds }),
    attempts: bands.rolloutsPerSeed,
    ...(hints !== undefined && { hints: { share: hints } }),
    sampling: { ...campaign.rollouts.sampling, temperature: bands.temperature },
    maxSteps: campaign.rollouts.maxSteps,
  });
}
