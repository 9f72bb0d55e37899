/**
 * One capability: synthesize an environment, self-test and calibrate it (again, harder or easier, while it is outside the bands), train
 * a LoRA on it, validate. Invariant: every end but a crash of the workflow itself is a result.
 */
import { ActivityFailure, ApplicationFailure, isCancellation, workflowInfo } from '@temporalio/workflow';
import type { ArtifactRef } from '../domain/artifacts';
import type { Campaign } from '../domain/campaign';
import type { Candidate } from '../domain/capability';
import type { CapabilityResult, Prepared, RolloutSummary, SynthesisRound } from '../domain/results';
import { CALIBRATION_SEEDS, HELD_OUT_SEEDS, TRAINING_SEEDS } from '../synthesis/seeds';
import { ChildStatus } from './child-status';
import type { ChildProgress } from './messages';
import { adapterPolicy, basePolicy, control, part, rollOut, sandbox } from './steps';
import { trainAndPick } from './training';

export interface CapabilityInput {
  campaign: Campaign;
  prepared: Prepared;
  candidate: Candidate;
  /** The base model's rollouts on the train split: user wording and failures for the synthesizer. */
  baseRollouts: ArtifactRef;
  /** The base model on the held-out part of the train split. */
  baseHeldOut: RolloutSummary;
}

export async function capability(input: CapabilityInput): Promise<CapabilityResult> {
  const { campaign, prepared, candidate } = input;
  const status = new ChildStatus(candidate.name);
  const result: CapabilityResult = {
    name: candidate.name,
    workflowId: workflowInfo().workflowId,
    status: 'failed',
    rounds: [],
  };
  try {
    const environment = await synthesize(input, result.rounds, status);
    if (!environment) {
      const last = result.rounds.at(-1);
      result.status = last?.selfTest.passed === false ? 'not_synthesized' : 'not_calibrated';
      result.reason = last?.calibration?.reasons.join('; ') ?? last?.selfTest.findings.join('; ') ?? 'no round was run';
      status.set('failed', `${result.status}: ${result.reason}`);
      return result;
    }
    status.set('train', `${campaign.training.steps} steps, when a gpu slot is free`);
    const heldOut = { kind: 'seeds', from: HELD_OUT_SEEDS, count: campaign.validation.seeds } as const;
    const spec = sandbox(environment);
    const trained = await trainAndPick(status.gate, {
      campaign,
      prepared,
      name: candidate.name,
      environment: spec,
      tasks: {
        kind: 'seeds',
        from: TRAINING_SEEDS,
        count: campaign.training.steps * campaign.training.groupsPerStep,
      },
      heldOut,
      steps: campaign.training.steps,
    });
    status.set('validate', `step ${trained.best.step} is the best iteration`);
    const trials = campaign.validation.trials;
    const [before, onTarget] = await status.gate.step(() =>
      Promise.all([
        rollOut(campaign, {
          purpose: `${candidate.name}: held out, base`,
          environment: spec,
          policy: basePolicy(prepared.base),
          tasks: heldOut,
          attempts: trials,
        }),
        rollOut(campaign, {
          purpose: `${candidate.name}: held out on the target`,
          environment: campaign.target,
          policy: adapterPolicy(prepared.base, trained.best.adapter),
          tasks: part(prepared.plan, 'heldOut'),
          attempts: trials,
        }),
      ]),
    );
    result.trained = {
      ...trained,
      synthesized: { before, after: trained.best.heldOut },
      target: { before: input.baseHeldOut, after: onTarget },
    };
    result.status = 'trained';
    status.set('done', `success ${percent(before.successRate)} -> ${percent(trained.best.heldOut.successRate)}`);
  } catch (error) {
    if (isCancellation(error)) throw error;
    result.reason = reasonOf(error);
    status.set('failed', result.reason);
  }
  return result;
}

/** Rounds of synthesis until the environment is calibrated; undefined after the last round. */
async function synthesize(
  { campaign, prepared, candidate, baseRollouts }: CapabilityInput,
  rounds: SynthesisRound[],
  status: ChildStatus,
): Promise<ArtifactRef | undefined> {
  const { calibration: bands, target } = campaign;
  let previous: { module: ArtifactRef; calibration: NonNullable<SynthesisRound['calibration']> } | undefined;
  for (let round = 1; round <= bands.maxRounds; round++) {
    const show = (phase: ChildProgress['phase']) => status.set(phase, `round ${round} of ${bands.maxRounds}`, round);
    show('synthesize');
    const module = await status.gate.step(() =>
      control(`synthesize an environment, round ${round}`).synthesize({
        target,
        plan: prepared.plan,
        rollouts: baseRollouts,
        candidate,
        round,
        ...(previous && { previous }),
      }),
    );
    show('self-test');
    const selfTest = await status.gate.step(() => control('self-test the environment').selfTest({ module }));
    const record: SynthesisRound = { round, module, selfTest };
    rounds.push(record);
    if (!selfTest.passed) return undefined;
    show('calibrate');
    record.calibrationRollouts = await status.gate.step(() =>
      rollOut(campaign, {
        purpose: `${candidate.name}: calibration, round ${round}`,
        environment: sandbox(module),
        policy: basePolicy(prepared.base),
        tasks: { kind: 'seeds', from: CALIBRATION_SEEDS, count: bands.seeds },
        attempts: bands.rolloutsPerSeed,
        sampling: { ...campaign.rollouts.sampling, temperature: bands.temperature },
        maxSteps: campaign.rollouts.maxSteps,
      }),
    );
    const rolloutsRef = record.calibrationRollouts.ref;
    record.calibration = await status.gate.step(() =>
      control('hold the rewards against the bands').calibrate({ bands, rollouts: rolloutsRef }),
    );
    if (record.calibration.accepted) return module;
    previous = { module, calibration: record.calibration };
  }
  return undefined;
}

const percent = (x: number): string => `${(100 * x).toFixed(0)}%`;

/** The innermost message: what a person needs to read. */
export function reasonOf(error: unknown): string {
  const cause = error instanceof ActivityFailure && error.cause instanceof Error ? error.cause : error;
  if (cause instanceof ApplicationFailure) return `${cause.type ?? 'Error'}: ${cause.message}`;
  return cause instanceof Error ? cause.message : String(cause);
}
