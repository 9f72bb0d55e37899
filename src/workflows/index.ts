/**
 * The workflows of a campaign. Each id begins with the campaign's NAME:
 *
 *   campaignRun            NAME               base rollouts, selection, children, router, evaluation, report
 *   ├─ campaignCapability  NAME/capability/C  synthesis rounds, training, validation
 *   └─ campaignArm         NAME/arm/A         one baseline, with at most the training rollouts of all capabilities
 *
 * Reading order: campaign.ts runs the stages over the state in run.ts; analysis.ts, children.ts and router.ts hold the stages. capability.ts runs
 * synthesis.ts and training.ts; arm.ts runs an arm. The rest is used everywhere: messages.ts (inputs and results), steps.ts (queue, timeouts and
 * retries of every activity), failures.ts, status.ts (progress) and approval.ts.
 *
 * Results: activities store texts, weights and rollouts under keys of their inputs, where a campaign that is run again finds them, and return references
 * and figures. Temporal retries activities without limit; they decide which failures are final (src/activities/errors.ts). A failed child is a
 * row of the report; a failure that concerns every child fails the campaign.
 *
 * Versions: a running campaign keeps the bundle of this code that it began with (src/workers/versions.ts), so a change of commands needs no `patched()`.
 * `patched()` is needed only for a change that running campaigns must take over (docs/development.md).
 *
 * Terms. Batch: rollouts of one policy on one set of tasks. Round: one version of an environment. Iteration: a checkpoint with its held-out figures.
 * Trace: the routed policy over base, adapters and merged adapters. Budget: training rollouts that an arm may spend. Pool: workers with one store
 * and one base model.
 */
export { campaignArm } from './arm';
export { campaignRun } from './campaign';
export { campaignCapability } from './capability';
