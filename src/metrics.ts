/**
 * What a step counts for those who watch its worker from outside. Labels come in bounded numbers: campaign and child, activity, queue, and what is
 * named here; never a rollout or a task. Where the worker has no metrics, and outside of steps, nothing is counted.
 */
import { asyncLocalStorage, type Info } from '@temporalio/activity';
import { type MetricMeter, type MetricTags, noopMetricMeter } from '@temporalio/common';
import type { Observe, Policy, Purpose, Rollout } from './domain/rollout';
import { traced } from './tracing';

/** By the name that Prometheus has, where counters end in `_total` as well. */
const metrics = {
  campaign_rollouts: ['counter', 'Rollouts that ended, by purpose and outcome; cause: why one broke'],
  campaign_turns: ['counter', 'Turns of scored rollouts'],
  campaign_tokens: ['counter', 'Tokens of scored rollouts, by kind: prompt or completion'],
  campaign_rollout_seconds: ['histogram', 'How long scored rollouts took'],
  campaign_training_step_seconds: ['histogram', 'Of a training step, by phase: rollouts or update'],
  campaign_training_reward: ['gauge', 'Mean reward of the last training step'],
  campaign_spent_microdollars: ['counter', 'Paid for language models, by role, in millionths of a dollar'],
  campaign_store_bytes: ['counter', 'Exchanged with the bucket of artifacts, by direction: put or fetched'],
  campaign_step_attempts: ['counter', 'Attempts at steps, by attempt: first or again'],
  campaign_heartbeat_age_seconds: ['gauge', 'Since the last heartbeat of a running step; 0 once it has ended'],
  campaign_queue_wait_seconds: ['gauge', 'How long the oldest step has waited in the queue of this worker'],
  campaign_policy_server_up: ['gauge', 'Whether the policy server answers'],
  campaign_disk_free_bytes: ['gauge', 'Free on the disk of the home'],
} as const satisfies Record<string, readonly ['counter' | 'gauge' | 'histogram', string]>;
type MetricName = keyof typeof metrics;
const names = Object.keys(metrics) as MetricName[];
export const counters = names.filter((name) => metrics[name][0] === 'counter');

/** Of histograms, in seconds. */
export const buckets: Record<string, number[]> = {
  campaign_rollout_seconds: [0.1, 0.3, 1, 3, 10, 30, 100, 300, 1000, 3000],
  campaign_training_step_seconds: [1, 3, 10, 30, 60, 120, 300, 600, 1800, 3600, 7200],
};

/** The campaign of a workflow's id, and which of its children the workflow is; '' for itself. */
export function campaignOf(workflowId = ''): { campaign: string; child: string } {
  const [campaign = '', ...child] = workflowId.split('/');
  return { campaign, child: child.join('/') };
}

/** Of everything that a step counts or traces. */
export const labelsOf = (step?: Info): MetricTags & Record<string, string> => ({
  ...campaignOf(step?.workflowExecution?.workflowId),
  activity_type: step?.activityType ?? '',
  task_queue: step?.taskQueue ?? '',
});

const meterOfStep = (): MetricMeter => asyncLocalStorage.getStore()?.metricMeter ?? noopMetricMeter;

/** Adds to a counter (whole numbers), sets a gauge, or records in a histogram. */
export function measure(name: MetricName, value: number, labels: MetricTags = {}, meter = meterOfStep()): void {
  const [kind, about] = metrics[name];
  if (kind === 'counter') meter.createCounter(name, '', about).add(Math.round(value), labels);
  else if (kind === 'gauge') meter.createGauge(name, 'float', '', about).set(value, labels);
  else meter.createHistogram(name, 'float', '', about).record(value, labels);
}

/** `metrics`: of a line of metrics.jsonl. */
export function measureStep({ reward, ...metrics }: Record<string, number | null>): void {
  if (typeof reward === 'number') measure('campaign_training_reward', reward);
  for (const phase of ['rollouts', 'update']) {
    const seconds = metrics[`${phase}_seconds`];
    if (typeof seconds === 'number') measure('campaign_training_step_seconds', seconds, { phase });
  }
}

/** Counts and traces the rollouts that it plays. */
export const observing =
  (purpose: Purpose, policy: Policy): Observe =>
  (play) =>
    traced(
      {
        name: 'rollout',
        isRoot: true,
        attributes: { ...labelsOf(asyncLocalStorage.getStore()?.info), purpose, adapter: adapterOf(policy) },
      },
      async (span) => {
        const played = await play();
        const { rollout } = played;
        const outcome = rollout.status === 'scored' ? rollout.stopReason : rollout.error.type;
        span?.setAttributes({ status: rollout.status, outcome, task: rollout.task, rollout: rollout.key });
        count(rollout, purpose);
        return played;
      },
    );

const adapterOf = (policy: Policy): string =>
  'router' in policy
    ? `router ${policy.router.sha256.slice(0, 12)}`
    : policy.adapters.map(({ ref }) => ref.sha256.slice(0, 12)).join('+') || 'none';

function count(rollout: Rollout, purpose: Purpose): void {
  const cause = rollout.status === 'broken' ? rollout.error.type : '';
  measure('campaign_rollouts', 1, { purpose, outcome: rollout.status, cause });
  if (rollout.status === 'broken') return;
  measure('campaign_rollout_seconds', rollout.seconds, { purpose });
  measure('campaign_turns', rollout.steps, { purpose });
  for (const kind of ['prompt', 'completion'] as const)
    measure('campaign_tokens', rollout.usage[`${kind}Tokens`], { purpose, kind });
}
