/** Which adapters gain anything, beyond chance. Invariant: the differences are those of the report, and count when it says that they do. */
import { direction } from '../report/direction';
import { taskMeans } from '../report/build/evidence';
import { differenceFigure } from '../report/build/figures';
import { working, type Dependencies } from './context';
import type { ControlActivities } from './types';

export function createFindGains({ store }: Pick<Dependencies, 'store'>): Pick<ControlActivities, 'findGains'> {
  return {
    async findGains({ adapters, base, ...level }) {
      const { progress } = working('compare the adapters');
      const gaining: string[] = [];
      for (const [n, { name, ownBefore, ownAfter, outcomes }] of adapters.entries()) {
        progress(n, adapters.length);
        const pairs = [
          { control: ownBefore, treatment: ownAfter },
          { control: base, treatment: outcomes },
        ];
        for (const { control, treatment } of pairs) {
          const [before, after] = [await taskMeans(store, control), await taskMeans(store, treatment)];
          const difference = differenceFigure({ id: name, treatment: after, control: before, level });
          if (direction(difference) === 'up' && !gaining.includes(name)) gaining.push(name);
        }
      }
      return { gaining };
    },
  };
}
