/** The record of a whole campaign with a baseline, a router and two capabilities, one of which failed; made up, over a real store. */
import { calibrate } from '../../../src/domain/calibration';
import { campaignSchema } from '../../../src/domain/campaign';
import type { FixedPolicy, Purpose, Rollout, RolloutSummary } from '../../../src/domain/rollout';
import type { CampaignRecord, Iteration, TrainingResult } from '../../../src/domain/results';
import { readOutcomes, readRecords } from '../../../src/rollout/read';
import { groupByTask } from '../../../src/domain/outcomes';
import { brokenRollout, scoredRollout } from '../../support/scored-rollout';
import { campaignStore, startedCampaign } from './stored';

export const { store, put, json, batch: summaryOf } = campaignStore();

export const [one, two] = ['tell_what_is_asked', 'refuse_what_is_forbidden'] as const;
export const LEVEL = 0.9;

export const recordsOf = ({ ref }: RolloutSummary): Promise<Rollout[]> => readRecords({ store, ref });

/** One task for each reward. */
export const batch = (purpose: Purpose, title: string, rewards: number[]): Promise<RolloutSummary> => {
  const rollouts = rewards.map((reward, i) => scoredRollout({ name: `${title} ${i}`, task: `t${i}`, reward }));
  return summaryOf(purpose, title, rollouts);
};

/** Trained for 4 steps of 10 rollouts, saved at 2 and 4; `heldOut` are the successes of 5 at each. */
const metricsOf = (body: string) => put(body, 'application/jsonl');

export async function trained(name: string, heldOut: [number, number]) {
  // The first step waits for what is done before it.
  const times = (step: number) => ({ rollouts_seconds: step === 1 ? 60 : 6, update_seconds: 4 });
  const lines = [1, 2, 3, 4].map((step) => JSON.stringify({ step, reward: step / 10, name, ...times(step) }));
  const training: TrainingResult = {
    ...{ steps: 4, rollouts: 40, brokenRollouts: 2, promptTokens: 400, completionTokens: 80 },
    metrics: await metricsOf(`${lines.join('\n')}\n`),
    checkpoints: [],
  };
  const policy: FixedPolicy = { base: 'base@1', adapters: [{ ref: await json(name), weight: 1 }] };
  const iterations: Iteration[] = [];
  for (const [i, step] of [2, 4].entries()) {
    const rewards = Array.from({ length: 5 }, (_, task) => Number(task < heldOut[i]!));
    const evaluated = await batch('held_out', `${name} at ${step}`, rewards);
    iterations.push({ step, rollouts: 10 * step, policy, heldOut: evaluated });
  }
  return { training, iterations };
}

/** A labeling pass that looked at nothing. */
const unlabeled = (pass: number) => ({ attempt: pass, totals: { total_failed: 0, total_passed: 0 }, labels: {} });

/** What the routed policy did: two tasks given to `one`, one to base, one not routed. */
const routedRollouts = (): Rollout[] => [
  ...[1, 1, 0].map((reward, i): Rollout => {
    const chosen = i < 2 ? one : 'base';
    const probabilities = { base: 0.2 + 0.1 * i, [one]: 0.9 - 0.1 * i };
    return {
      ...scoredRollout({ name: `routed ${i}`, task: `t${i}`, reward }),
      routed: { chosen, policy: { base: 'base@1', adapters: [] }, probabilities },
    } as Rollout;
  }),
  brokenRollout('t3', 'RouterFailed', 'no answer'),
];

/** As the environment was judged. */
export const calibrationOf = async ({ ref }: RolloutSummary) => {
  const groups = [...groupByTask(await readOutcomes({ store, ref })).values()];
  return calibrate({ groups, bands: campaignSchema.shape.calibration.parse(undefined), confidence: LEVEL });
};

/** What the router was fitted to. */
function fittedRouter() {
  const crossValidated = (mean: number) => ({ mean, standardError: 0.1, n: 12 });
  const [constant, ridge] = [crossValidated(0.5), crossValidated(0.6)];
  return {
    maker: { kind: 'learned', version: '1', options: {} },
    options: ['base', one].map((name) => ({ name, policy: { base: 'base@1', adapters: [] } })),
    crossValidation: {
      ...{ helps: true, routed: ridge, base: crossValidated(0.3), bestSingle: { option: one, ...constant } },
      unionCeiling: crossValidated(0.95),
      form: 'ridge',
      forms: [
        { form: 'constant', ...constant },
        { form: 'ridge', ...ridge },
      ],
    },
    parameters: {},
  };
}

export async function fullRecord(): Promise<CampaignRecord> {
  const heldOut = (title: string, rewards: number[]) => batch('held_out', title, rewards);
  const [first, baseline] = [await trained(one, [3, 4]), await trained('theirs', [2, 5])];
  const [best] = first.iterations as [Iteration];
  const baseHeldOut = await heldOut('base held out', [1, 0, 0, 0, 0]);
  const candidates = [one, two].map((name) => ({ name, definition: `${name}.`, examples: [] }));
  const statistics = { coverage: { mean: 0.4, std: 0.1 }, delta: { mean: 0.5, std: 0.1 }, passes: 8, evidence: [] };
  const attempts = [1, 0, 0.5, 0, 1, 0].map((reward, i) => ({
    ...scoredRollout({ name: `c${i}`, task: `seed${i % 3}`, reward }),
    attempt: Math.floor(i / 3),
  }));
  const calibrationRollouts = await summaryOf('calibration', 'calibration', attempts);
  const calibration = await calibrationOf(calibrationRollouts);
  const [module, revised] = [await json('first'), await json('second')];
  const option = async (purpose: Purpose, name: string, rewards: number[]) => {
    return { name, rollouts: await batch(purpose, `${purpose} ${name}`, rewards) };
  };
  const started = startedCampaign(await batch('base_rollouts', 'base rollouts', [1, 0, 0, 1, 0, 0, 0.5]), {
    arms: [{ kind: 'grpo_target', name: 'theirs' }, { kind: 'other' }],
    evaluation: { confidence: LEVEL },
  });
  return {
    ...started,
    prepared: { ...started.prepared, plan: await json({}) },
    baseHeldOut,
    selection: {
      candidates: await json({ candidates, faults: [] }),
      labels: await Promise.all([0, 1, 2, 3, 4, 5, 6, 7].map((pass) => json(unlabeled(pass)))),
      failedPasses: [8, 9].map((pass) => ({ pass, reason: 'no JSON' })),
      selection: await json({
        passes: 8,
        capabilities: [one, two].map((name) => ({ name, votes: 8, selected: true, ...statistics })),
      }),
      selected: candidates.map((candidate) => ({ candidate, votes: 8 })),
    },
    capabilities: [
      {
        ...{ name: one, workflowId: 'w1', status: 'completed' },
        rounds: [
          { round: 1, module, selfTest: { passed: false, findings: ['doing nothing scores 1.0'] } },
          { round: 2, module: revised, selfTest: { passed: true, findings: [] }, calibration, calibrationRollouts },
        ],
        ...{ work: first, best },
        validation: {
          synthesized: { before: await heldOut('base on seeds', [0, 0, 1]), after: best.heldOut },
          target: { before: baseHeldOut, after: await heldOut('one on target', [1, 1, 0, 0, 0]) },
        },
      },
      { name: two, workflowId: 'w2', status: 'failed', reason: 'TrainerDied: gone', rounds: [] },
    ],
    arms: [
      {
        ...{ name: 'theirs', kind: 'grpo_target', workflowId: 'w3', status: 'completed' },
        ...{ work: baseline, best: baseline.iterations[0]! },
      },
      { name: 'other', kind: 'other', workflowId: 'w4', status: 'failed', reason: 'no such option' },
    ],
    router: {
      router: await json(fittedRouter()),
      ...{ options: ['base', one], merged: [] },
      failed: [],
      policies: [await option('outcome_matrix', 'base', [0, 1, 0]), await option('outcome_matrix', one, [1, 1, 0])],
    },
    evaluation: {
      policies: [
        await option('test', 'base', [0, 0, 1, 0]),
        await option('test', one, [1, 0, 0, 0]),
        await option('test', 'theirs', [1, 0, 0, 1]),
        { name: 'trace', rollouts: await summaryOf('test', 'test trace', routedRollouts()) },
      ],
      failed: [],
    },
  };
}
