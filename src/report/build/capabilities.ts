/** The selected capabilities in the report: calibration of each round, training, and validation with intervals. */
import { decisionText } from '../../domain/approval';
import type { Figure } from '../../domain/artifacts';
import type { Measures, SynthesisRound } from '../../domain/calibration';
import { type TaskMeans, together } from '../../domain/statistics';
import { policyNames } from '../../domain/policies';
import type { CampaignRecord, CapabilityResult, ChosenTasks } from '../../domain/results';
import type { CapabilityDraft, ReportedCapability, ReportedRound } from '../capability-model';
import type { Evidence } from './evidence';
import { branchesOf, countFigure, differenceFigure, ofBranch, rateFigure, slug } from './figures';
import { reportedTraining } from './training';

interface Sources {
  record: CampaignRecord;
  evidence: Evidence;
}

export function capabilitiesOf(sources: Sources): CapabilityDraft[] | undefined {
  const { selection, capabilities = [] } = sources.record;
  return selection?.selected.map(({ candidate: { name, definition } }) => {
    const result = capabilities.find((one) => one.name === name);
    return { name, definition, ...(result && reportedResult(sources, result)) };
  });
}

function reportedResult(o: Sources, result: CapabilityResult): Omit<CapabilityDraft, 'name' | 'definition'> {
  const { name, status, workflowId, reason, best, validation, tasks } = result;
  const id = `capabilities.${slug(name)}`;
  const rounds = result.rounds.map((round) => reportedRound(name, round));
  return {
    status,
    workflowId,
    reason,
    rounds: rounds.length > 0 ? rounds : undefined,
    tasks: tasks && chosenTasks(`${id}.tasks`, tasks),
    training: reportedTraining({ evidence: o.evidence, id, child: result }),
    ...(validation && validated(o, result, validation)),
    adapter: best?.policy.adapters[0]?.ref,
  };
}

const chosenTasks = (id: string, { plan, counts }: ChosenTasks): ReportedCapability['tasks'] => {
  const figure = (of: keyof typeof counts) => countFigure(`${id}.${of}`, counts[of], [plan]);
  return { lacking: figure('lacking'), present: figure('present'), mixed: figure('mixed'), heldOut: figure('heldOut') };
};

export function reportedRound(capability: string, given: SynthesisRound): ReportedRound {
  const { round, module, selfTest, decision, calibration, calibrationRollouts } = given;
  const figure = (of: keyof Measures['intervals'], name: string, unit: Figure['unit']): Figure => {
    const { [of]: value, seeds: n, intervals } = calibration!;
    const id = `capabilities.${slug(capability)}.calibration.round-${round}.${name}`;
    const interval = { ...intervals[of], method: 'over seeds' };
    return { id, value, n, unit, interval, from: calibrationRollouts ? [calibrationRollouts.ref] : [] };
  };
  return {
    round,
    selfTest,
    calibration: calibration && {
      ...{ verdict: calibration.verdict, reasons: calibration.reasons, judged: calibration.judged?.text },
      meanReward: figure('meanReward', 'mean_reward', 'reward'),
      successRate: figure('successRate', 'success_rate', 'fraction'),
      informative: figure('informative', 'informative', 'fraction'),
    },
    module,
    decision: decision && decisionText(decision),
  };
}

/** Compares the adapter with the base on held-out seeds of its own environment and on all tasks of the target that it was tried on. */
function validated(
  { record, evidence }: Sources,
  { name, work }: CapabilityResult,
  { synthesized, target }: NonNullable<CapabilityResult['validation']>,
): Pick<CapabilityDraft, 'validation' | 'onTarget'> {
  const { level, means, test } = evidence;
  const id = `capabilities.${slug(name)}`;
  const compared = (where: string, control: TaskMeans, treatment: TaskMeans) => {
    const at = `${id}.validation.${where}`;
    return {
      before: rateFigure(`${at}.before`, control, level),
      after: rateFigure(`${at}.after`, treatment, level),
      difference: differenceFigure({ id: `${at}.difference`, treatment, control, level }),
    };
  };
  const seeds = [means(synthesized.before.ref), means(synthesized.after.ref)] as const;
  const onTasks = [means(target.before.ref), means(target.after.ref)] as const;
  const validation = {
    chose: work && work.iterations.length > 1 ? (true as const) : undefined,
    synthesized: compared('synthesized', ...seeds),
    branches: branchesOf(...seeds).map((branch) => {
      const [before, after] = seeds.map((side) => ofBranch(side, branch)) as [TaskMeans, TaskMeans];
      return { branch, ...compared(`synthesized.${branch}`, before, after) };
    }),
    target: compared('target', ...onTasks),
  };

  const { base } = policyNames;
  const matrix = new Map(record.router?.policies.map(({ name: option, rollouts }) => [option, means(rollouts.ref)]));
  const tried = [
    onTasks,
    [matrix.get(base), matrix.get(name)] as const,
    [test.get(base), test.get(name)] as const,
  ].flatMap(([control, treatment]) => (control && treatment ? [{ control, treatment }] : []));
  const sides = together(tried);
  const from = tried.flatMap(({ treatment, control }) => [...treatment.from, ...control.from]);
  const onTarget = differenceFigure({
    id: `${id}.on_target`,
    treatment: { ...sides.treatment, from },
    control: { ...sides.control, from: [] },
    level,
  });
  return {
    validation: { ...validation, branches: validation.branches.length > 0 ? validation.branches : undefined },
    onTarget,
  };
}
