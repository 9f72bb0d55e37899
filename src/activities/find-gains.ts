/** Which adapters gain anything, beyond chance. Invariant: the differences are those of the report, and count where they count there. */
import type { ArtifactRef } from '../domain/artifacts';
import { direction, successDifference } from '../domain/paired-statistics';
import { taskMeans } from '../rollout/read';
import { working, type Dependencies } from './context';
import type { ControlActivities } from './types';

export function createFindGains({ store }: Pick<Dependencies, 'store'>): Pick<ControlActivities, 'findGains'> {
  return {
    async findGains({ adapters, base, ...level }) {
      const { progress } = working('compare the adapters');
      const isAbove = async (treatment: ArtifactRef, control: ArtifactRef): Promise<boolean> => {
        const [after, before] = [await taskMeans(store, treatment), await taskMeans(store, control)];
        return direction(successDifference({ treatment: after, control: before, level })) === 'up';
      };
      const gaining: string[] = [];
      for (const [n, { name, ownBefore, ownAfter, outcomes }] of adapters.entries()) {
        progress(n, adapters.length);
        if ((await isAbove(ownAfter, ownBefore)) || (await isAbove(outcomes, base))) gaining.push(name);
      }
      return { gaining };
    },
  };
}
