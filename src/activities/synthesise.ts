/** Step 2 of the method: synthesize an environment, test it, hold its calibration against the bands. */
import { digest } from '../artifacts/hash';
import type { ArtifactRef } from '../domain/artifacts';
import type { Environment, Message } from '../domain/environment';
import { outcomes, readRollouts } from '../rollout/read';
import { calibrate, CannotSynthesize, messageHash, selfTest, synthesize } from '../synthesis';
import { fail, type Dependencies } from './context';
import { testTexts } from './leakage';
import type { ControlActivities } from './types';

export function createSynthesis({
  store,
  environments,
}: Dependencies): Pick<ControlActivities, 'synthesize' | 'selfTest' | 'calibrate'> {
  return {
    async synthesize({ target, rollouts, candidate, round, previous }) {
      const environment = await environments.get(target);
      const description = await environment.describe();
      const inputs = [rollouts, ...(previous ? [previous.module] : [])];
      const key = `environment/${digest({ inputs, candidate, version: description.version, calibration: previous?.calibration })}`;
      const known = await store.find(key);
      if (known) return known;
      try {
        const { source, rationale } = synthesize({
          candidate,
          description,
          round,
          conversations: await conversations(rollouts),
          forbidden: await forbidden(environment),
          ...(previous && { previous: { source: await text(previous.module), feedback: previous.calibration } }),
        });
        const body = `${source}\n// Rationale: ${rationale.replaceAll('\n', ' ')}\n`;
        return await store.put({ key, producer: 'synthesize', inputs, mediaType: 'text/javascript', body });
      } catch (error) {
        if (error instanceof CannotSynthesize) throw fail('CannotSynthesize', error.message);
        throw error;
      }
    },

    async selfTest({ module }) {
      return selfTest({ source: await text(module) });
    },

    async calibrate({ bands, rollouts }) {
      return calibrate({ groups: [...(await outcomes({ store, ref: rollouts })).values()], bands });
    },
  };

  async function text(ref: ArtifactRef): Promise<string> {
    return (await store.read(ref)).toString('utf8');
  }

  async function conversations(ref: ArtifactRef): Promise<Message[][]> {
    const all: Message[][] = [];
    for await (const rollout of readRollouts({ store, ref }))
      if (rollout.status === 'scored') all.push(rollout.messages);
    return all;
  }

  /** Hashes of the test tasks' first messages: modules draw again rather than come up with one of them. */
  async function forbidden(environment: Environment): Promise<string[]> {
    return [...(await testTexts(environment)).keys()].map(messageHash);
  }
}
