/**
 * Calibration of one version of an environment with the policy that its training starts from. Invariant: hints, and then easier instances
 * beside them, are tried only where the rewards before missed the bands for want of success, and what each came to is kept. Hints under
 * which the policy succeeds less (a small model is easily put off) are left out again.
 */
import { wantsAid, type CalibrationReport } from '../domain/calibration';
import { sandboxSpec } from '../domain/environment-spec';
import type { RolloutSummary } from '../domain/rollout-summary';
import { aidNames, type Aids, type SynthesisRound } from '../domain/synthesis-round';
import { CALIBRATION_SEEDS } from '../sandbox/seeds';
import { percent, type ChildStatus } from './child-status';
import { control, rollOut, seeds } from './steps';
import type { SynthesisInput } from './synthesis';

/** Puts what it finds into the round's record. */
export async function calibrate(input: SynthesisInput, record: SynthesisRound, status: ChildStatus): Promise<void> {
  const { calibration: bands, evaluation } = input.campaign;
  const judged = async (rollouts: RolloutSummary, aids: Aids): Promise<CalibrationReport> => {
    const report = await status.gate.step(() =>
      control(input.campaign, 'hold the rewards against the bands').calibrate({
        bands,
        rollouts: rollouts.ref,
        confidence: evaluation.confidence,
      }),
    );
    const names = aidNames(aids);
    status.calibrated(`${names && `with ${names} `}${percent(report.successRate)}`);
    return report;
  };
  record.calibrationRollouts = await status.gate.step(() => rolledOut(input, record, {}));
  record.calibration = await judged(record.calibrationRollouts, {});
  let last = record.calibration;
  let kept: Aids = {};
  for (const aid of aidsFor(input, record)) {
    if (!wantsAid(last, bands)) return;
    const aids = { ...kept, ...aid };
    const calibrationRollouts = await status.gate.step(() => rolledOut(input, record, aids));
    const before = last.successRate;
    last = await judged(calibrationRollouts, aids);
    record.aided = [...(record.aided ?? []), { ...aids, calibrationRollouts, calibration: last }];
    // Over all instances: which of them are judged may differ between the two.
    if (last.successRate >= before) kept = aids;
  }
}

/** Hints, then easier instances; as far as the module gives them and the campaign allows them. */
function aidsFor({ campaign }: SynthesisInput, { selfTest }: SynthesisRound): Aids[] {
  const { hintShare, easierShare } = campaign.calibration;
  return [
    ...(selfTest.hints && hintShare > 0 ? [{ hints: hintShare }] : []),
    ...(selfTest.easier && easierShare > 0 ? [{ easier: easierShare }] : []),
  ];
}

function rolledOut(
  { campaign, candidate, start }: SynthesisInput,
  { round, module }: SynthesisRound,
  aids: Aids,
): Promise<RolloutSummary> {
  const { calibration: bands } = campaign;
  const names = aidNames(aids);
  return rollOut(campaign, {
    purpose: 'calibration',
    title: `${candidate.name}: calibration, round ${round}${names && `, with ${names}`}`,
    environment: sandboxSpec(module),
    policy: start,
    tasks: seeds(campaign, { from: CALIBRATION_SEEDS, count: bands.seeds, easier: aids.easier }),
    attempts: bands.rolloutsPerSeed,
    ...(aids.hints !== undefined && { hints: { share: aids.hints } }),
    sampling: { ...campaign.rollouts.sampling, temperature: bands.temperature },
    maxSteps: campaign.rollouts.maxSteps,
  });
}
