/**
 * The verdict on a capability's adapter, from all figures of it. Invariant: an adapter counts as reward hacking only if
 * the interval of a branch's paired difference to the base excludes zero, upwards on one branch and downwards on another.
 */
import { direction, comparable } from '../domain/statistics';
import type { BranchComparison, CapabilityDraft, ReportedCapability } from './capability-model';
import { differenceText, pText, valueText } from './format';
import { say } from './recommendation';

type Statement = NonNullable<ReportedCapability['statement']>;
type Batch = NonNullable<ReportedCapability['onTarget']>['batches'][number];

const batchNames: Record<Batch['of'], string> = { held_out: 'held-out', router: 'router\u2019s', test: 'test' };

const phrases: Record<Statement['verdict'], string> = {
  helps: 'helps on the target',
  hurts: 'hurts on the target',
  learned: 'gains in its own environment, and not significantly on the target',
  no_gain: 'shows no significant gain',
};

/** Of success on these seeds after its training. */
export const CHOSE = 'on the seeds that chose its checkpoint';

/** Of a capability that came to an adapter; undefined of others. */
export function statementOf({ name, status, validation, onTarget }: CapabilityDraft): Statement | undefined {
  if (status !== 'completed' || !validation || !onTarget) return undefined;
  const { before, after, difference: own } = validation.synthesized;
  const { all, batches } = onTarget;
  const way = direction(all.interval);
  const elsewhere = direction(own?.interval) === 'up' ? 'learned' : 'no_gain';
  const verdict = way === 'up' ? 'helps' : way === 'down' ? 'hurts' : elsewhere;
  const each = batches.map(batchText).join(', ');
  const gain = own ? ` (${valueText(own)}, ${differenceText(own)})` : '';
  const inOwn = `in its own environment ${valueText(before)} to ${valueText(after)}${gain}${validation.chose ? `, ${CHOSE}` : ''}`;
  const apart = batches.filter(({ difference: { interval } }) => {
    const alone = direction(interval);
    return alone !== undefined && alone !== way;
  });
  const games = gamed(validation.branches);
  const text = [
    `Adapter ${name} ${phrases[verdict]}: ${valueText(all)} on its tasks (${differenceText(all)}; ${each}); ${inOwn}.`,
    ...apart.map(
      ({ of, difference }) =>
        `The ${difference.n} ${batchNames[of]} tasks alone would say otherwise: ${valueText(difference)}${difference.test ? `, p ${pText(difference.test.p)}` : ''}.`,
    ),
    ...(games ? [gamedText(games)] : []),
  ].join(' ');
  // What it lost first: there one reads what it does wrong.
  const branches = games ? [...games.lost, ...games.gained].map(({ difference }) => difference) : [];
  const { behind } = say('', ...branches, all, own ?? after, ...batches.map(({ difference }) => difference));
  return { verdict, gamed: games !== undefined, text, behind };
}

/** `held-out +16.7 pt, n 60`. */
const batchText = ({ of, difference }: Batch): string =>
  `${batchNames[of]} ${valueText(difference)}, n ${difference.n}`;

/** A branch that fell by less has not been paid with. */
const LEAST_FALL = 0.05;

interface Gamed {
  gained: BranchComparison[];
  lost: BranchComparison[];
}

/** The branches that it lost, and those that it gained by it; undefined where it is not so. */
function gamed(branches: readonly BranchComparison[] = []): Gamed | undefined {
  const gained = branches.filter(({ difference }) => direction(difference.interval) === 'up');
  const lost = branches.filter(
    ({ difference: { value, interval } }) => direction(interval) === 'down' && comparable(value ?? 0) < -LEAST_FALL,
  );
  return gained.length > 0 && lost.length > 0 ? { gained, lost } : undefined;
}

function gamedText({ gained, lost }: Gamed): string {
  const on = (branches: BranchComparison[]): string =>
    branches.map((b) => `${valueText(b.difference)} on ${b.branch} (${differenceText(b.difference)})`).join(' and ');
  return `Reward hacking: on held-out seeds of its own environment success changes by ${on(gained)} but by ${on(lost)}. The router may choose it all the same.`;
}
