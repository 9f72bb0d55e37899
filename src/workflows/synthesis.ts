/** Rounds of synthesis: write or revise, self-test, calibrate, until the environment is within the bands or there is nothing more to try. */
import type { ArtifactRef } from '../domain/artifacts';
import type { Campaign } from '../domain/campaign';
import type { Candidate } from '../domain/capability';
import type { CapabilityResult, Prepared, SynthesisRound } from '../domain/results';
import { sandboxSpec } from '../domain/environment-spec';
import { CALIBRATION_SEEDS } from '../sandbox/seeds';
import type { ChildStatus } from './child-status';
import { failedWith } from './failure';
import type { ChildProgress } from './messages';
import { analysis, basePolicy, control, rollOut } from './steps';

export interface SynthesisInput {
  campaign: Campaign;
  prepared: Prepared;
  candidate: Candidate;
  /** The base model's rollouts on the train split: user wording and failures for the synthesizer. */
  baseRollouts: ArtifactRef;
}

type Ended = { status: Extract<CapabilityResult['status'], `not_${string}`>; reason: string };

/** Every round is put into `rounds` as it ends. */
export async function synthesize(
  input: SynthesisInput,
  rounds: SynthesisRound[],
  status: ChildStatus,
): Promise<{ module: ArtifactRef } | Ended> {
  const { maxRounds } = input.campaign.calibration;
  for (let round = 1; round <= maxRounds; round++) {
    const show = (phase: ChildProgress['phase']) => status.set(phase, `round ${round} of ${maxRounds}`, round);
    show('synthesize');
    const written = await write(input, rounds, status);
    if ('cannot' in written) return endedWithout(rounds, written.cannot);
    show('self-test');
    const { module } = written;
    const selfTest = await status.gate.step(() =>
      control(input.campaign, 'self-test the environment').selfTest({ module }),
    );
    const record: SynthesisRound = { round, module, selfTest };
    rounds.push(record);
    if (!selfTest.passed) continue;
    show('calibrate');
    await calibrate(input, record, status);
    if (record.calibration?.accepted) return { module };
  }
  return endedWithout(rounds);
}

/** The next version of the module; or why the synthesizer has none. */
async function write(
  { campaign, candidate, baseRollouts }: SynthesisInput,
  rounds: readonly SynthesisRound[],
  status: ChildStatus,
): Promise<{ module: ArtifactRef } | { cannot: string }> {
  const { target, synthesizer } = campaign;
  const round = rounds.length + 1;
  const last = rounds.at(-1);
  try {
    const module = await status.gate.step(() =>
      analysis(campaign, `synthesize an environment, round ${round}`).synthesize({
        target,
        synthesizer,
        rollouts: baseRollouts,
        candidate,
        round,
        ...(last && {
          previous: {
            module: last.module,
            findings: last.selfTest.findings,
            ...(last.calibration && { calibration: last.calibration }),
          },
        }),
      }),
    );
    return { module };
  } catch (error) {
    const cannot = failedWith(error, 'CannotSynthesize');
    if (cannot === undefined) throw error;
    return { cannot };
  }
}

async function calibrate(
  { campaign, prepared, candidate }: SynthesisInput,
  record: SynthesisRound,
  status: ChildStatus,
): Promise<void> {
  const { calibration: bands, evaluation } = campaign;
  const made = await status.gate.step(() =>
    rollOut(campaign, {
      purpose: 'calibration',
      title: `${candidate.name}: calibration, round ${record.round}`,
      environment: sandboxSpec(record.module),
      policy: basePolicy(prepared.base),
      tasks: { kind: 'seeds', from: CALIBRATION_SEEDS, count: bands.seeds },
      attempts: bands.rolloutsPerSeed,
      sampling: { ...campaign.rollouts.sampling, temperature: bands.temperature },
      maxSteps: campaign.rollouts.maxSteps,
    }),
  );
  record.calibrationRollouts = made;
  record.calibration = await status.gate.step(() =>
    control(campaign, 'hold the rewards against the bands').calibrate({
      bands,
      rollouts: made.ref,
      confidence: evaluation.confidence,
    }),
  );
}

/** How it ends without an accepted environment: by the last round that was calibrated, or by why none was. */
function endedWithout(rounds: readonly SynthesisRound[], cannot?: string): Ended {
  const calibrated = rounds.findLast(({ calibration }) => calibration)?.calibration;
  const findings = rounds.at(-1)?.selfTest.findings ?? [];
  const found = calibrated ? calibrated.reasons : findings;
  return {
    status: calibrated ? 'not_calibrated' : 'not_synthesized',
    reason: [...found, ...(cannot === undefined ? [] : [cannot])].join('; ') || 'no round was run',
  };
}
