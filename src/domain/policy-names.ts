/** Names of rows that a report has beside adapters and arms. Invariant: neither a capability nor an arm is called so. */
export const policyNames = { base: 'base', routed: 'trace', ceiling: 'union_ceiling', weighted: 'weighted' } as const;

export const isPolicyName = (name: string): boolean => (Object.values(policyNames) as string[]).includes(name);
