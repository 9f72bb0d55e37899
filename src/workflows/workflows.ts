/** The workflows over the kinds of arms that there are: what a bundle registers. */
import { armWorkflow } from './arm';
import type { ArmKind } from './arms/arm';
import { campaignWorkflow } from './campaign';
import { capability } from './capability';

export const createWorkflows = (arms: readonly ArmKind[]) => ({
  campaign: campaignWorkflow(arms),
  capability,
  arm: armWorkflow(arms),
});
