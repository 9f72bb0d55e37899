/** Names of rows that a report has beside adapters and arms. Invariant: neither a capability nor an arm is called so. */
import type { MoeGate } from './moe-gate';

export const policyNames = { base: 'base', routed: 'trace', ceiling: 'union_ceiling' } as const;

const GATE = 'moe_gate_';
export const gateName = ({ form, scope }: MoeGate): string => `${GATE}${form}_${scope}`;

/** Whether an option is all adapters behind a gate that was trained on the outcomes of the others. */
export const isLearned = (name: string): boolean => name.startsWith(GATE);

export const isPolicyName = (name: string): boolean =>
  isLearned(name) || (Object.values(policyNames) as string[]).includes(name);
