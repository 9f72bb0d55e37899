/** Ledgers for one test: one in memory without a budget, whose replies can be read, and one that refuses every call. */
import type { Asking, Ledger, ModelReply } from '../../src/llm/model';

export interface MemoryLedger extends Ledger {
  kept: Map<string, ModelReply>;
  steps: string[];
}

export function memoryLedger(): MemoryLedger {
  const kept = new Map<string, ModelReply>();
  const steps: string[] = [];
  return {
    kept,
    steps,
    find: async (key) => kept.get(key),
    permit: async () => undefined,
    count: async () => undefined,
    keep: async (key, { reply, step }) => {
      steps.push(step);
      if (!kept.has(key)) kept.set(key, reply);
    },
  };
}

export const askingBy = (ledger: Ledger, more: Partial<Asking> = {}): Asking => ({
  ledger,
  step: 'discovery',
  signal: new AbortController().signal,
  ...more,
});

const refuse = async () => {
  throw new Error('nothing may be asked here');
};

/** A ledger for code that must not ask a language model: every call fails. */
export const noLedger: Ledger = { find: refuse, permit: refuse, keep: refuse, count: refuse };
