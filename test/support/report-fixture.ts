/** A report as a demo campaign leaves it: three planted capabilities, one that is not calibrated, one candidate left out. Made up, but consistent. */
import { createHash } from 'node:crypto';
import type { ArtifactRef, Figure } from '../../src/domain/artifacts';
import { selectionRuleSchema } from '../../src/domain/campaign';
import type { Arm, ReportDraft, Role } from '../../src/report/model';
import type { ReportedCandidate, ReportedRound, ReportedTraining } from '../../src/report/capability-model';
import { wilsonInterval } from '../../src/domain/statistics';

export const ref = (name: string, mediaType = 'application/x-ndjson'): ArtifactRef => {
  const sha256 = createHash('sha256').update(name).digest('hex');
  return { uri: `artifact:${sha256}`, sha256, bytes: name.length, mediaType };
};

export const figure = (id: string, value: number | null, n: number, more: Partial<Figure> = {}): Figure => ({
  id,
  value,
  n,
  from: n > 0 ? [ref(id)] : [],
  ...more,
});

const share = (id: string, successes: number, n: number, more: Partial<Figure> = {}): Figure => {
  const { low, high } = wilsonInterval({ successes, trials: n });
  return figure(id, successes / n, n, {
    unit: 'fraction',
    interval: { low, high, level: 0.95, method: 'wilson' },
    ...more,
  });
};

const difference = (id: string, value: number, half: number, n = 200): Figure =>
  figure(id, value, n, {
    unit: 'difference',
    interval: { low: value - half, high: value + half, level: 0.95, method: 'sign-flip test over tasks' },
  });

const count = (id: string, value: number): Figure =>
  figure(id, value, value, { unit: 'count', from: value > 0 ? [ref(id)] : [] });

const candidate = (
  name: string,
  definition: string,
  [cov, covStd, delta, deltaStd]: [number, number, number, number],
  votes: number,
): ReportedCandidate => ({
  name,
  definition,
  votes,
  passes: 10,
  coverage: figure(`selection.${name}.coverage`, cov, 10, { std: covStd }),
  delta: figure(`selection.${name}.delta`, delta, 10, { std: deltaStd }),
  selected: votes >= 8,
  citations: [],
});

const calibrated = (name: string, number: number, success: number, accepted: boolean): ReportedRound['calibration'] => {
  const id = `capabilities.${name}.calibration.${number}`;
  return {
    verdict: accepted ? 'accepted' : success > 0.6 ? 'too_easy' : 'too_hard',
    reasons: accepted ? [] : [`success rate ${success} is outside 0.2 to 0.6`],
    meanReward: figure(`${id}.mean_reward`, Math.min(1, success + 0.08), 384, { unit: 'reward' }),
    successRate: share(`${id}.success_rate`, Math.round(success * 384), 384),
    informative: share(`${id}.informative`, success > 0.6 || success < 0.2 ? 11 : 21, 24),
  };
};

const training = (name: string, from: number, to: number, steps: number, bestStep = steps): ReportedTraining => {
  const at = (step: number): number => from + (to - from) * (1 - Math.exp(-4 * (step / steps)));
  const heldOut = Array.from({ length: steps / 8 }, (_, i) => 8 * (i + 1));
  return {
    steps,
    rollouts: count(`training.${name}.rollouts`, steps * 64),
    rewardCurve: {
      points: Array.from({ length: steps }, (_, i) => ({
        step: i + 1,
        reward: Math.min(1, Math.max(0, at(i + 1) + 0.05 * Math.sin(i * 2.3))),
      })),
      from: [ref(`${name} metrics`)],
    },
    iterations: heldOut.map((step) => ({
      step,
      rollouts: count(`training.${name}.step-${step}.rollouts`, step * 64),
      successRate: share(
        `training.${name}.step-${step}.success_rate`,
        Math.round((at(step) - (step > bestStep ? 0.15 : 0.1)) * 48),
        48,
      ),
      meanReward: figure(`training.${name}.step-${step}.mean_reward`, at(step) - 0.03, 48, {
        unit: 'reward',
        interval: { low: at(step) - 0.12, high: Math.min(1, at(step) + 0.06), level: 0.95, method: 't over tasks' },
      }),
    })),
    bestStep,
  };
};

const round = (name: string, number: number, success: number, accepted: boolean): ReportedRound => ({
  round: number,
  selfTest: { passed: true, findings: [] },
  calibration: calibrated(name, number, success, accepted),
  module: ref(`${name} module ${number}`, 'text/javascript'),
});

const adapters = ['complete_all_requested_actions', 'refuse_forbidden_actions', 'choose_among_candidates'] as const;
const failed = 'compute_required_values';

const candidates = [
  candidate(adapters[0], 'Carries out every action that the user asked for.', [0.41, 0.02, 0.72, 0.03], 10),
  candidate(adapters[1], 'Refuses what the policy forbids, and says why.', [0.33, 0.03, 0.66, 0.04], 10),
  candidate(adapters[2], 'Picks the record that fits all that the user said.', [0.24, 0.02, 0.51, 0.05], 10),
  candidate(failed, 'Computes a value that the policy prescribes.', [0.14, 0.03, 0.31, 0.06], 9),
  candidate('tell_requested_information', 'Tells every fact that was asked for.', [0.05, 0.01, 0.08, 0.05], 0),
  candidate('ask_for_missing_identifiers', 'Asks for a missing identifier.', [0.02, 0.01, 0.11, 0.09], 1),
];

const tasks = 200;
/** Solved by each option: base, the adapters, trace, which is not scored on one task, and grpo_target. */
const SOLVED = [58, 84, 76, 70, 152, 116];
const outcomes = Array.from({ length: tasks }, (_, task) =>
  SOLVED.map((most, option) => (option === 4 && task === 17 ? null : Number(task < most))),
);
const options = ['base', ...adapters, 'trace', 'grpo_target'];
const solved = (option: number): number => outcomes.reduce((sum, row) => sum + (row[option] ?? 0), 0);

const arm = (o: { name: string; role: Role; trained: number; all: number; solved: number; heldOut?: number }): Arm => ({
  name: o.name,
  role: o.role,
  trainingRollouts: count(`arms.${o.name}.rollouts.training`, o.trained),
  allRollouts: count(`arms.${o.name}.rollouts.all`, o.all),
  tasks,
  trials: 1,
  successRate: share(`arms.${o.name}.success_rate`, o.solved, tasks),
  ...(o.role !== 'base' && {
    differenceToBase: {
      ...difference(`arms.${o.name}.difference_to_base`, (o.solved - solved(0)) / tasks, 0.065),
      test: { better: o.solved - solved(0), worse: 0, p: 2 ** (1 - (o.solved - solved(0))) },
    },
  }),
  ...(o.heldOut !== undefined && { heldOut: share(`arms.${o.name}.held_out`, o.heldOut, 60) }),
  status: 'completed',
});

const baseline = (): Arm => {
  const name = 'grpo_target';
  const own = training(name, 0.25, 0.6, 72, 48);
  const heldOut = own.iterations.find(({ step }) => step === own.bestStep)!.successRate;
  return {
    ...arm({ name, role: 'baseline', trained: 48 * 64, all: 48 * 64 + 540, solved: solved(5) }),
    kind: 'grpo_target',
    heldOut,
    training: own,
  };
};

/** A new one each time: tests may change it. */
export const reportFixture = (): ReportDraft =>
  structuredClone({
    campaign: {
      name: 'demo',
      seed: 1,
      configSha256: ref('config').sha256,
      baseModel: `base-${ref('base').sha256.slice(0, 12)}`,
      target: { name: 'shop', version: '1' },
      startedAt: '2026-01-05T10:00:00Z',
      finishedAt: '2026-01-05T10:09:12Z',
      status: 'completed' as const,
      stage: 'evaluation' as const,
      workflowId: 'demo',
    },
    rollouts: {
      scored: count('rollouts.scored', 9876),
      broken: count('rollouts.broken', 12),
      brokenByError: [
        {
          errorType: 'PolicyServerUnavailable',
          message: 'no connection',
          task: 'train-3',
          rollouts: count('rollouts.broken.policy_server_unavailable', 12),
        },
      ],
      byPurpose: (['base_rollouts', 'training', 'test'] as const).map((purpose) => ({
        purpose,
        scored: count(`rollouts.${purpose}.scored`, 3292),
        broken: count(`rollouts.${purpose}.broken`, 4),
      })),
    },
    selection: {
      rule: selectionRuleSchema.parse({}),
      failed: figure('selection.failed', 214, 340, { unit: 'count' }),
      passed: figure('selection.passed', 126, 340, { unit: 'count' }),
      candidates,
      passes: 10,
      failedPasses: [],
      from: [ref('selection', 'application/json')],
    },
    capabilities: [
      ...adapters.map((name, i) => {
        const rounds =
          i === 0 ? [round(name, 1, 0.71, false), round(name, 2, 0.44, true)] : [round(name, 1, 0.3 + 0.1 * i, true)];
        return {
          ...{ name, definition: candidates[i]!.definition },
          rounds,
          training: training(name, 0.4, 0.95 - 0.2 * i, 24),
          validation: {
            synthesized: {
              before: share(`capabilities.${name}.synthesized.before`, 20, 48),
              after: share(`capabilities.${name}.synthesized.after`, 44 - 9 * i, 48),
            },
            target: {
              before: share(`capabilities.${name}.target.before`, 21, 60),
              after: share(`capabilities.${name}.target.after`, 31 - 5 * i, 60),
              difference: difference(`capabilities.${name}.target.difference`, (10 - 5 * i) / 60, 0.09, 60),
            },
          },
          onTarget: difference(`capabilities.${name}.on_target`, (10 - 5 * i) / 60, 0.09, 260),
          adapter: ref(`${name} adapter`, 'application/vnd.artifact-tree+json'),
          status: 'completed' as const,
          workflowId: `demo/capability/${name}`,
        };
      }),
      {
        ...{ name: failed, definition: candidates[3]!.definition },
        rounds: [
          round(failed, 1, 0.04, false),
          {
            round: 2,
            selfTest: { passed: false, findings: ['doing nothing scores 1.0'] },
            module: ref(`${failed} module 2`, 'text/javascript'),
          },
          round(failed, 3, 0.12, false),
        ],
        status: 'not_trained' as const,
        reason: 'success rate 0.12 is below 0.2',
        workflowId: `demo/capability/${failed}`,
      },
    ],
    router: {
      kind: 'learned',
      crossValidation: {
        routed: share('router.routed', 128, 200),
        base: share('router.base', 84, 200),
        bestSingle: { option: adapters[0], successRate: share('router.best_single', 104, 200) },
        oracle: share('router.oracle', 141, 200),
      },
      helps: true,
      choices: options.slice(0, 4).map((option, i) => ({
        option,
        share: share(`router.choices.${option}`, [74, 61, 43, 22][i]!, 200),
        successRate: share(`router.choices.${option}.success_rate`, [60, 40, 30, 9][i]!, [74, 61, 43, 22][i]!),
      })),
    },
    arms: [
      arm({ name: 'base', role: 'base', trained: 0, all: 0, solved: solved(0), heldOut: 21 }),
      ...adapters.map((name, i) =>
        arm({ name, role: 'adapter', trained: 1536, all: 2172, solved: solved(i + 1), heldOut: 31 - 5 * i }),
      ),
      arm({ name: 'trace', role: 'routed', trained: 4608, all: 8516, solved: solved(4) }),
      baseline(),
      arm({ name: 'oracle', role: 'oracle', trained: 4608, all: 7716, solved: 156 }),
    ],
    comparisons: [
      {
        arm: 'trace',
        against: 'grpo_target',
        difference: difference('comparisons.trace.grpo_target', (solved(4) - solved(5)) / tasks, 0.08),
      },
    ],
    solverMatrix: { tasks: outcomes.map((_, i) => `test-${i}`), options, outcomes },
    leakage: { passed: true, textsChecked: 431, testTasks: 200, hits: [], from: [ref('leakage', 'application/json')] },
    cost: {
      wallSeconds: (['rollouts', 'selection', 'capabilities'] as const).map((stage) => ({ stage, seconds: 131 })),
      promptTokens: figure('cost.prompt_tokens', 2_345_678, 9876, { unit: 'tokens' }),
      completionTokens: figure('cost.completion_tokens', 312_456, 9876, { unit: 'tokens' }),
    },
  });

/** The same with branches in the second capability, whose adapter refuses everything. */
export const gamedFixture = (): ReportDraft => {
  const draft = reportFixture();
  const capability = draft.capabilities![1]!;
  const id = `capabilities.${capability.name}`;
  const of = (branch: string, n: number, before: number, after: number) => ({
    branch,
    before: share(`${id}.synthesized.${branch}.before`, before, n),
    after: share(`${id}.synthesized.${branch}.after`, after, n),
    difference: difference(`${id}.synthesized.${branch}.difference`, (after - before) / n, 0.07, n),
  });
  const branches = [of('special', 34, 0, 34), of('twin', 14, 14, 1)];
  Object.assign(capability.validation!, { branches });
  const calibration = capability.rounds!.at(-1)!.calibration!;
  calibration.judged = 'over the instances of `special`; `twin` is mastered: 0.89';
  return draft;
};

/** A report with many merged adapters, and all fields of a learned router. */
export function learnedFixture(draft = reportFixture()): ReportDraft {
  const { router, arms } = draft;
  const like = arms!.find(({ role }) => role === 'adapter')!;
  const sums = [0.7, 0.5, 0.9, 0.6, 0.8].map((value, n): Arm => ({
    ...like,
    name: `complete_all_requested_actions+sum_number_${n}`,
    role: 'merged',
    successRate: { ...like.successRate!, id: `arms.sum${n}.success_rate`, value },
  }));
  arms!.splice(4, 0, ...sums);
  const failed = { successRate: undefined, differenceToBase: undefined, status: 'failed' as const };
  arms!.push({ ...arms!.at(-2)!, ...failed, name: 'grpo_on_all_environments', reason: 'TrainerDied: '.repeat(30) });
  const measured = router!.crossValidation.routed;
  router!.crossValidation.forms = ['constant', 'ridge'].map((form) => ({
    form,
    kept: form === 'ridge',
    successRate: { ...measured, id: `router.cross_validation.forms.${form}` },
  }));
  return draft;
}
