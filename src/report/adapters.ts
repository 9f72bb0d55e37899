/**
 * The verdict on a capability's adapter, from all figures of it. Invariant: an adapter counts as reward hacking only if
 * the interval of a branch's paired difference to the base excludes zero, upwards on one branch and downwards on another.
 */
import { direction, comparable } from '../domain/statistics';
import type { BranchComparison, CapabilityDraft, ReportedCapability } from './capability-model';
import { intervalText, valueText } from './format';
import { say } from './recommendation';

type Statement = NonNullable<ReportedCapability['statement']>;

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
  const { after, difference: own } = validation.synthesized;
  const { all, batches } = onTarget;
  const way = direction(all.interval);
  const elsewhere = direction(own?.interval) === 'up' ? 'learned' : 'no_gain';
  const verdict = way === 'up' ? 'helps' : way === 'down' ? 'hurts' : elsewhere;
  const hacking = hackedBranches(validation.branches);
  const text = `Adapter ${name} ${phrases[verdict]}: ${valueText(all)} (${intervalText(all)}).${hacking ? ` ${hackingText(hacking)}` : ''}`;
  // The branch that it lost comes first: its rollouts show what the adapter does wrong.
  const branches = hacking ? [...hacking.lost, ...hacking.gained].map(({ difference }) => difference) : [];
  const { behind } = say('', ...branches, all, own ?? after, ...batches.map(({ difference }) => difference));
  return { verdict, rewardHacking: hacking !== undefined, text, behind };
}

/** A smaller fall of a branch does not count as lost. */
const LEAST_FALL = 0.05;

interface Hacking {
  gained: BranchComparison[];
  lost: BranchComparison[];
}

/** Returns undefined unless it gained some branches and lost others. */
function hackedBranches(branches: readonly BranchComparison[] = []): Hacking | undefined {
  const gained = branches.filter(({ difference }) => direction(difference.interval) === 'up');
  const lost = branches.filter(
    ({ difference: { value, interval } }) => direction(interval) === 'down' && comparable(value ?? 0) < -LEAST_FALL,
  );
  return gained.length > 0 && lost.length > 0 ? { gained, lost } : undefined;
}

function hackingText({ gained, lost }: Hacking): string {
  const on = (branches: BranchComparison[]): string =>
    branches.map((b) => `${valueText(b.difference)} on ${b.branch} (${intervalText(b.difference)})`).join(' and ');
  return `Reward hacking: in its own environment success changes by ${on(gained)} but by ${on(lost)}.`;
}
