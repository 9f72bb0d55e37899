/**
 * Task queues, by kind of worker. Invariant: two homes on one Temporal server never share the queue of workflows, and share workers only where
 * both name the same pool.
 */
export const taskQueues = {
  /** Of a store: its workflows run there, and the short steps. */
  control: (store: string): string => `control-${store}`,
  /** Of a pool: workers with one store, whose policy server serves one base model. */
  rollouts: (pool: string): string => `rollouts-${pool}`,
  gpu: (pool: string): string => `gpu-${pool}`,
} as const;
