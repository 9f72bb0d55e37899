/**
 * Plain requests: one turn each, without tools and without an instruction that could be checked. What a policy answers to them is not scored;
 * it is compared with what the base model answers (src/domain/plain.ts). Invariant: request n is the same in every campaign of a version.
 */
import type { Environment } from '../domain/environment';
import { PLAIN } from '../domain/environment-spec';
import { defineKind } from '../domain/kind';
import { instanceOf, seedTasks } from '../sandbox/seeds';
import type { EnvironmentKind } from './kinds';
import { PLAIN_REQUESTS } from './plain-requests';

export const plain: EnvironmentKind = {
  ...defineKind({ kind: PLAIN, version: '1', options: {}, open: createPlain }),
  internal: true,
};

function createPlain(): Environment {
  return {
    describe: async () => ({ name: PLAIN, version: '1', policy: '', tools: [], maxSteps: 1, hasReference: false }),
    tasks: async (split) =>
      split === 'train' ? [] : seedTasks({ from: 0, count: PLAIN_REQUESTS.length }).map((id) => ({ id, split })),
    async reset({ id }) {
      const request = PLAIN_REQUESTS[instanceOf(id).seed];
      if (request === undefined) throw new Error(`task ${id}: there are ${PLAIN_REQUESTS.length} plain requests`);
      return {
        start: { messages: [{ role: 'user', content: request }], tools: [], maxSteps: 1 },
        step: async () => ({ messages: [], done: true, stopReason: 'agent_stop' }),
        evaluate: async () => ({ reward: 0, breakdown: {} }),
        close: async () => undefined,
      };
    },
    close: async () => undefined,
  };
}
