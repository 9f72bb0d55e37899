/** The smallest detectable difference: the report's own test finds it in 80% of simulated campaigns. */
import { detectableDifference } from '../../../src/domain/power';
import { seededRandom } from '../../../src/domain/seeds';
import { pairedDifference } from '../../../src/domain/statistics';

const CAMPAIGNS = 200;

test.each([
  { tasks: 60, trials: 1, base: 0.3 },
  { tasks: 114, trials: 4, base: 0.5 },
])('of $tasks tasks, $trials trials each and a base of $base', ({ tasks, trials, base }) => {
  const difference = detectableDifference({ tasks, trials, base })!;
  const random = seededRandom(`power ${tasks}/${trials}/${base}`, 1);
  const rates = (rate: number) =>
    new Map(
      Array.from({ length: tasks }, (_, task) => {
        const solved = Array.from({ length: trials }, () => Number(random() < rate));
        return [`task-${task}`, solved.reduce((all, one) => all + one, 0) / trials];
      }),
    );
  const found = Array.from({ length: CAMPAIGNS }, () => {
    const { low } = pairedDifference({ treatment: rates(base + difference), control: rates(base) });
    return low > 0;
  }).filter(Boolean).length;
  expect(found / CAMPAIGNS).toBeGreaterThanOrEqual(0.75);
  expect(found / CAMPAIGNS).toBeLessThanOrEqual(0.85);
});
