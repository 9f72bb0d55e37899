/** Rounds of synthesis (write or revise, self-test, calibrate) until an environment is accepted or no round is left. */
import type { ArtifactRef } from '../domain/artifacts';
import { isCalibrated, type SynthesisRound } from '../domain/calibration';
import type { Campaign } from '../domain/campaign';
import type { Candidate, Lacking } from '../domain/capability';
import type { FailureType } from '../domain/failures';
import { sandboxSpec } from '../domain/kinds';
import type { CapabilityResult, Prepared } from '../domain/results';
import { CALIBRATION_SEEDS } from '../domain/seeds';
import { failedWith } from './failures';
import type { ChildProgress } from './messages';
import { type ChildStatus, percent } from './status';
import { basePolicy, control, longControl, rollOut, seedTasks } from './steps';

export interface SynthesisInput {
  campaign: Campaign;
  prepared: Prepared;
  /** The analyst's candidates, with the citations of this one. */
  candidates: ArtifactRef;
  candidate: Candidate;
  others: Lacking[];
  baseRollouts: ArtifactRef;
}

/** The failure of a rollout whose module throws or does not keep its contract. */
const MODULE_FAILED = 'BadEnvironment' satisfies FailureType;

type NotTrained = Pick<Required<CapabilityResult>, 'reason'>;

/** Returns the accepted module, or why there is none. Appends each round to `rounds`. */
export async function synthesize(
  input: SynthesisInput,
  rounds: SynthesisRound[],
  status: ChildStatus,
): Promise<{ module: ArtifactRef } | NotTrained> {
  const { maxRounds } = input.campaign.calibration;
  for (let round = 1; round <= maxRounds; round++) {
    const show = (phase: ChildProgress['phase']) => status.set(phase, `round ${round} of ${maxRounds}`, round);
    show('synthesize');
    const written = await write(input, rounds);
    if ('cannot' in written) return whyNotTrained(rounds, written.cannot);
    show('self-test');
    const { module } = written;
    const { name: campaign, budget, target: unlike } = input.campaign;
    const step = control(input.campaign, 'self-test the environment');
    const selfTest = await step.selfTest({ module, unlike, campaign, budget });
    const record: SynthesisRound = { round, module, selfTest };
    rounds.push(record);
    if (!selfTest.passed) continue;
    show('calibrate');
    const finding = await calibrate(input, record, status);
    if (finding !== undefined)
      record.selfTest = { ...selfTest, passed: false, findings: [...selfTest.findings, finding] };
    if (finding !== undefined || !isCalibrated(record)) continue;
    if (await isApproved(input, rounds, status)) return { module };
  }
  return whyNotTrained(rounds);
}

/** Asks for approval of the last round's environment, and records the decision there. */
async function isApproved(
  { campaign, candidate }: SynthesisInput,
  rounds: readonly SynthesisRound[],
  status: ChildStatus,
): Promise<boolean> {
  if (!campaign.approval.environments) return true;
  const last = rounds.at(-1)!;
  const { round, module } = last;
  status.set('approval', `round ${round} of ${campaign.calibration.maxRounds}`, round);
  last.decision = await status.approvals.ask(campaign, {
    waiting: { what: 'environment', of: module.sha256, names: [candidate.name], round },
    environment: { candidate, rounds: [...rounds] },
  });
  return last.decision.kind === 'approve';
}

/** Calibrates a version. Returns a finding for the synthesizer if the module failed in rollouts: its training would fail, too. */
async function calibrate(
  { campaign, prepared, candidate }: SynthesisInput,
  record: SynthesisRound,
  status: ChildStatus,
): Promise<string | undefined> {
  const { calibration: bands, evaluation, rollouts } = campaign;
  const { round, module } = record;
  try {
    const { ref, errors } = (record.calibrationRollouts = await rollOut(campaign, {
      purpose: 'calibration',
      title: `${candidate.name}: calibration, round ${round}`,
      environment: sandboxSpec(module),
      policy: basePolicy(prepared.base),
      tasks: seedTasks(campaign, { from: CALIBRATION_SEEDS, count: bands.seeds }),
      attempts: bands.rolloutsPerSeed,
      sampling: { ...rollouts.sampling, temperature: bands.temperature },
      maxSteps: rollouts.maxSteps,
    }));
    const { confidence } = evaluation;
    const step = control(campaign, 'check calibration thresholds');
    record.calibration = await step.calibrate({ bands, rollouts: ref, confidence });
    status.calibrated(percent(record.calibration.successRate));
    const broken = errors[MODULE_FAILED] ?? 0;
    return broken > 0 ? `in calibration rollouts: ${broken} attempts ended with ${MODULE_FAILED}` : undefined;
  } catch (error) {
    const broke = failedWith(error, MODULE_FAILED);
    if (broke === undefined) throw error;
    return `in calibration rollouts: ${broke}`;
  }
}

async function write(
  { campaign, candidates, candidate, others, baseRollouts }: SynthesisInput,
  rounds: readonly SynthesisRound[],
): Promise<{ module: ArtifactRef } | { cannot: string }> {
  const { name, budget, target, synthesizer, seed } = campaign;
  const round = rounds.length + 1;
  const last = rounds.at(-1);
  try {
    const module = await longControl(campaign, `synthesize an environment, round ${round}`).synthesize({
      ...{ campaign: name, budget, target, synthesizer, rollouts: baseRollouts },
      ...{ candidates, candidate, others, round, seed },
      ...(last && { previous: previousOf(last) }),
    });
    return { module };
  } catch (error) {
    // Trying again would give the same answer, since equal questions have one reply.
    const invalid = failedWith(error, 'AnswerInvalid');
    const spent = failedWith(error, 'BudgetSpent');
    const cannot = failedWith(error, 'CannotSynthesize') ?? invalid ?? (spent && `budget spent: ${spent}`);
    if (cannot === undefined) throw error;
    return { cannot };
  }
}

function previousOf({ module, selfTest, calibration, calibrationRollouts, decision }: SynthesisRound) {
  return {
    module,
    findings: selfTest.findings,
    ...(decision?.kind === 'reject' && { rejection: decision.reason }),
    ...(calibration && { calibration }),
    ...(calibrationRollouts && { attempts: calibrationRollouts.ref }),
  };
}

/** The reason: missed bands and rejection of the last calibrated version, else the last findings. */
function whyNotTrained(rounds: readonly SynthesisRound[], cannot?: string): NotTrained {
  const calibrated = rounds.findLast(({ calibration }) => calibration);
  const { calibration, decision } = calibrated ?? {};
  const rejected =
    decision?.kind === 'reject' ? [`a person read this version and rejected it: ${decision.reason}`] : [];
  const against = [...(calibration?.reasons ?? []), ...rejected];
  const problems = against.length > 0 ? against : (rounds.at(-1)?.selfTest.findings ?? []);
  return { reason: [...problems, ...(cannot === undefined ? [] : [cannot])].join('; ') || 'no round was run' };
}
