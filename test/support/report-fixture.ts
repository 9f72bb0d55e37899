/** A report as a demo campaign leaves it: three planted capabilities, one that is not calibrated, one candidate left out. Made up, but consistent. */
import { createHash } from 'node:crypto';
import type { ArtifactRef } from '../../src/domain/artifacts';
import { calibrationBandsSchema, selectionRuleSchema } from '../../src/domain/campaign';
import type { Figure } from '../../src/domain/figure';
import type { CalibrationFigures, ReportDraft, ReportedCandidate, ReportedTraining } from '../../src/domain/report';
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
    interval: { low: value - half, high: value + half, level: 0.95, method: 'paired bootstrap over tasks' },
  });

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
});

const round = (name: string, number: number, success: number, accepted: boolean): CalibrationFigures => {
  const id = `capabilities.${name}.calibration.${number}`;
  const over = (what: string, value: number): Figure =>
    share(`${id}.${what}`, Math.round(value * 24), 24, { from: [ref(`${id} rollouts`)] });
  return {
    round: number,
    accepted,
    verdict: accepted ? 'accepted' : success > 0.6 ? 'too_easy' : 'too_hard',
    reasons: accepted ? [] : [`success rate ${success} is outside 0.2 to 0.6`],
    meanReward: figure(`${id}.mean_reward`, Math.min(1, success + 0.08), 384, { unit: 'reward' }),
    successRate: share(`${id}.success_rate`, Math.round(success * 384), 384),
    allSuccess: over('all_success', success > 0.6 ? 0.45 : 0.08),
    allZero: over('all_zero', success < 0.2 ? 0.4 : 0.05),
    constant: over('constant', success > 0.6 || success < 0.2 ? 0.55 : 0.13),
    informative: over('informative', success > 0.6 || success < 0.2 ? 0.45 : 0.87),
    rewardStd: figure(`${id}.reward_std`, 0.31, 384, { unit: 'reward' }),
    passAt: {
      '1': figure(`${id}.pass_at_1`, success, 24, { unit: 'fraction' }),
      '16': figure(`${id}.pass_at_16`, Math.min(1, success + 0.4), 24, { unit: 'fraction' }),
    },
  };
};

const training = (name: string, from: number, to: number, steps: number): ReportedTraining => {
  const at = (step: number): number => from + (to - from) * (1 - Math.exp(-4 * (step / steps)));
  const heldOut = Array.from({ length: steps / 8 }, (_, i) => 8 * (i + 1));
  return {
    steps,
    rollouts: figure(`training.${name}.rollouts`, steps * 64, steps * 64, { unit: 'count' }),
    rewardCurve: {
      points: Array.from({ length: steps }, (_, i) => ({
        step: i + 1,
        reward: Math.min(1, Math.max(0, at(i + 1) + 0.05 * Math.sin(i * 2.3))),
      })),
      from: [ref(`${name} metrics`)],
    },
    heldOut: heldOut.map((step) => ({
      step,
      reward: figure(`training.${name}.held_out.${step}`, at(step) - 0.03, 48, {
        unit: 'reward',
        interval: { low: at(step) - 0.12, high: Math.min(1, at(step) + 0.06), level: 0.95, method: 't over tasks' },
      }),
    })),
    bestStep: steps,
  };
};

const adapters = ['complete_all_requested_actions', 'refuse_forbidden_actions', 'choose_among_candidates'] as const;
const failed = 'compute_required_values';

const candidates = [
  candidate(
    adapters[0],
    'Carries out every action that the user asked for. Does not stop after the first one.',
    [0.41, 0.02, 0.72, 0.03],
    10,
  ),
  candidate(
    adapters[1],
    'Refuses what the policy forbids, and says why. Carries out the permitted rest.',
    [0.33, 0.03, 0.66, 0.04],
    10,
  ),
  candidate(
    adapters[2],
    'Picks the record that fits all that the user said, among similar ones.',
    [0.24, 0.02, 0.51, 0.05],
    10,
  ),
  candidate(
    failed,
    'Computes a value that the policy prescribes. Does not copy a near one.',
    [0.14, 0.03, 0.31, 0.06],
    9,
  ),
  candidate('tell_requested_information', 'Tells the user every fact that was asked for.', [0.05, 0.01, 0.08, 0.05], 0),
  candidate('ask_for_missing_identifiers', 'Asks for an identifier that was not given.', [0.02, 0.01, 0.11, 0.09], 1),
];

const tasks = 200;
/** Skills that each task needs, by a fixed rule; base has none of the planted ones. */
const outcomes = Array.from({ length: tasks }, (_, task) => {
  const needs = [task % 3 === 0, task % 4 === 1, task % 5 === 2].map(Boolean);
  const chance = (salt: number): number => ((task * 2654435761 + salt * 40503) >>> 8) % 100;
  const solves = (has: boolean[], salt: number): number =>
    needs.every((need, i) => !need || has[i]) && chance(salt) < 92 ? 1 : 0;
  const singles = [0, 1, 2].map((own) =>
    solves(
      [0, 1, 2].map((i) => i === own),
      own,
    ),
  );
  const base = solves([false, false, false], 7);
  const trace = Math.max(base, ...singles) && chance(11) < 95 ? 1 : 0;
  return [base, ...singles, task === 17 ? null : trace, chance(3) < 58 ? 1 : 0];
});
const options = ['base', ...adapters, 'trace', 'grpo_target'];
const solved = (option: number): number => outcomes.reduce((sum, row) => sum + (row[option] ?? 0), 0);
const union = outcomes.filter((row) => row.slice(0, 4).some((cell) => cell === 1)).length;

const arm = (name: string, trainingRollouts: number, successes: number) => ({
  name,
  trainingRollouts,
  tasks,
  trials: 1,
  successRate: share(`arms.${name}.success_rate`, successes, tasks),
  ...(name === 'base'
    ? {}
    : { differenceToBase: difference(`arms.${name}.difference_to_base`, (successes - solved(0)) / tasks, 0.065) }),
  status: 'evaluated' as const,
});

const count = (id: string, value: number): Figure => figure(id, value, value, { unit: 'count', from: [ref(id)] });

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
        { errorType: 'PolicyServerUnavailable', rollouts: count('rollouts.broken.policy_server_unavailable', 12) },
      ],
      byPurpose: [
        {
          purpose: 'discovery',
          scored: count('rollouts.discovery.scored', 340),
          broken: count('rollouts.discovery.broken', 0),
        },
        {
          purpose: 'training',
          scored: count('rollouts.training.scored', 6144),
          broken: count('rollouts.training.broken', 12),
        },
        {
          purpose: 'evaluation',
          scored: count('rollouts.evaluation.scored', 1200),
          broken: count('rollouts.evaluation.broken', 0),
        },
      ],
    },
    selection: {
      rule: selectionRuleSchema.parse({}),
      failed: 214,
      passed: 126,
      candidates,
      from: [ref('selection', 'application/json')],
    },
    bands: calibrationBandsSchema.parse({ seeds: 24 }),
    capabilities: [
      ...adapters.map((name, i) => {
        const rounds =
          i === 0 ? [round(name, 1, 0.71, false), round(name, 2, 0.44, true)] : [round(name, 1, 0.3 + 0.1 * i, true)];
        return {
          ...candidates[i]!,
          calibration: rounds.at(-1)!,
          rounds,
          selfTest: { passed: true, findings: [] },
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
            helps: i === 0,
          },
          adapter: ref(`${name} adapter`, 'application/vnd.artifact-tree+json'),
          status: 'trained' as const,
          workflowId: `demo/capability/${name}`,
        };
      }),
      {
        ...candidates[3]!,
        calibration: round(failed, 3, 0.12, false),
        rounds: [round(failed, 1, 0.04, false), round(failed, 2, 0.08, false), round(failed, 3, 0.12, false)],
        selfTest: { passed: true, findings: [] },
        status: 'not_calibrated' as const,
        reason: 'success rate 0.12 is below 0.2',
        workflowId: `demo/capability/${failed}`,
      },
    ],
    router: {
      kind: 'linear',
      crossValidation: {
        routed: share('router.routed', 128, 200),
        base: share('router.base', 84, 200),
        bestSingle: { option: adapters[0], successRate: share('router.best_single', 104, 200) },
        unionCeiling: share('router.union_ceiling', 141, 200),
      },
      helps: true,
      choices: options.slice(0, 4).map((option, i) => ({
        option,
        share: share(`router.choices.${option}`, [74, 61, 43, 22][i]!, 200),
      })),
      errors: figure('router.errors', 0, 200, { unit: 'count' }),
    },
    arms: [
      arm('base', 0, solved(0)),
      ...adapters.map((name, i) => arm(name, 1536, solved(i + 1))),
      arm('trace', 4608, solved(4)),
      { ...arm('grpo_target', 4608, solved(5)), training: training('grpo_target', 0.25, 0.6, 72) },
      arm('union_ceiling', 4608, union),
    ],
    comparisons: [
      {
        arm: 'trace',
        against: 'grpo_target',
        difference: difference('comparisons.trace.grpo_target', (solved(4) - solved(5)) / tasks, 0.08),
      },
    ],
    solverMatrix: {
      from: ref('solver matrix', 'application/json'),
      tasks,
      inline: { tasks: outcomes.map((_, i) => `test-${i}`), options, outcomes },
    },
    leakage: { passed: true, textsChecked: 431, testTasks: 200, hits: [], from: [ref('leakage', 'application/json')] },
    cost: {
      wallSeconds: [
        { stage: 'rollouts' as const, seconds: 31 },
        { stage: 'selection' as const, seconds: 4 },
        { stage: 'capabilities' as const, seconds: 402 },
        { stage: 'router' as const, seconds: 38 },
        { stage: 'evaluation' as const, seconds: 77 },
      ],
      rollouts: count('cost.rollouts', 9876),
      promptTokens: figure('cost.prompt_tokens', 2_345_678, 9876, { unit: 'tokens' }),
      completionTokens: figure('cost.completion_tokens', 312_456, 9876, { unit: 'tokens' }),
    },
  });
