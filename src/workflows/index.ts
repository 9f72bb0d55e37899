/** What the control worker registers. */
import { arms } from './arms';
import { createWorkflows } from './workflows';

export const { campaign, capability, arm } = createWorkflows(arms);
