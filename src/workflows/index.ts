/** What the control worker registers. */
import { arms } from './arms';
import { createWorkflows } from './campaign';

export const { campaign, capability, arm } = createWorkflows(arms);
