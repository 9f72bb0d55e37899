/** Counters for dashboards and alerts (docs/operations.md), on the metric meter of the running activity. Code outside activities counts nothing. */
import { asyncLocalStorage } from '@temporalio/activity';
import type { MetricTags } from '@temporalio/common';

const counters = {
  campaign_rollouts: 'Finished rollouts, by purpose and outcome; cause is the type of an infrastructure failure',
  campaign_spent_microdollars: 'Cost of language models in millionths of a dollar, by role',
  campaign_optimizer_steps: 'Finished optimizer steps',
} as const;

export function count(name: keyof typeof counters, value: number, tags: MetricTags = {}): void {
  const activity = asyncLocalStorage.getStore();
  // Workflow ids of children begin with the campaign's.
  const [campaign = ''] = activity?.info.workflowExecution?.workflowId.split('/') ?? [];
  activity?.metricMeter.createCounter(name, '', counters[name]).add(Math.round(value), { campaign, ...tags });
}
