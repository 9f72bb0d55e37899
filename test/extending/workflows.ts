/** A bundle with one arm more: what a project of its own would register. */
import { fixedPrompt } from '../../examples/fixed-prompt';
import { arms } from '../../src/workflows/arms';
import { createWorkflows } from '../../src/workflows/campaign';

export const { campaign, capability, arm } = createWorkflows([...arms, fixedPrompt]);
