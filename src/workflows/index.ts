/**
 * The workflow types that the control workers run, with their ids:
 *
 *   campaignRun         NAME               base rollouts, selection, children, router, evaluation, report
 *   campaignCapability  NAME/capability/C  synthesis rounds, training, validation; one for each selected capability
 *   campaignArm         NAME/arm/A         one baseline, with at most the training rollouts of all capabilities
 *
 * Names. Workflow types begin with `campaign` (`workflowTypes` in messages.ts), search attributes with `Campaign`. Task queues are
 * campaign-control-<store> for workflows and short steps, campaign-rollouts-<pool> and campaign-gpu-<pool>; steps of hours wait in QUEUE.long.
 *
 * Results. Activities store texts, weights and rollouts under keys of their inputs, and return references and figures. A child returns its result to its
 * campaign, which writes the report. So a campaign can be cancelled or terminated and run again: its activities find what is stored.
 *
 * Retries. Temporal retries activities without limit; an activity decides which failures are final (src/activities/errors.ts). A child that fails is a row
 * of the report. A failure that concerns every child fails the campaign (failures.ts).
 *
 * Terms:
 *   batch      rollouts of one policy on one set of tasks: one activity
 *   round      one version of an environment, with its self-test and calibration
 *   iteration  a checkpoint with its held-out figures; the best one is evaluated
 *   trace      the routed policy over base, adapters and sums of adapters
 *   budget     training rollouts that an arm may spend to be compared with trace
 *   pool       workers with one store and one base model
 */
export { campaignArm } from './arm';
export { campaignRun } from './campaign';
export { campaignCapability } from './capability';
