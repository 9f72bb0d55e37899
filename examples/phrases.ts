/**
 * An analyst that looks for words: where somebody else gives the occasion, the agent must say the phrase. Passes look at random halves of
 * the rollouts. Used by one line in src/analyst/index.ts.
 */
import { z } from 'zod';
import { passFrom, type AnalystKind } from '../src/analyst/analyst';
import { capabilityNameSchema, type Label } from '../src/domain/capability';
import { defineKind } from '../src/domain/kinds';
import { seededRandom } from '../src/domain/seeds';
import type { ScoredRollout } from '../src/domain/rollout';

const byKey = (rollouts: readonly ScoredRollout[]) => [...rollouts].sort((a, b) => (a.key < b.key ? -1 : 1));

export const phrases: AnalystKind = defineKind({
  kind: 'phrases',
  version: '1',
  options: { name: capabilityNameSchema, definition: z.string(), occasion: z.string(), phrase: z.string() },
  open({ name, definition, occasion, phrase }, identity) {
    function labelOf({ messages }: ScoredRollout): Label {
      const asked = messages.findIndex(({ role, content }) => /user|tool/.test(role) && content.includes(occasion));
      if (asked < 0) return 'NA';
      const after = messages.slice(asked);
      return after.some((said) => said.role === 'assistant' && said.content.includes(phrase)) ? 'PRESENT' : 'LACKING';
    }
    return {
      identity,
      selects: 'by labels',

      async discover({ rollouts, quotable }) {
        const shown = byKey(rollouts).filter(({ key }) => quotable.has(key));
        const two = (label: Label) => shown.filter((rollout) => labelOf(rollout) === label).slice(0, 2);
        const examples = [...two('LACKING'), ...two('PRESENT')].map(({ key }) => key);
        return { candidates: [{ name, definition, examples }], faults: [] };
      },

      async label({ rollouts, pass, seed }) {
        const random = seededRandom('phrases', seed, pass);
        const half = byKey(rollouts).filter(() => random() < 0.5);
        return passFrom({ attempt: pass, rollouts: half, names: [name], labelOf });
      },
    };
  },
});
