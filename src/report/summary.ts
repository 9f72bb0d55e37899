/** The first sentence of a report: which policy to ship and how it compares to GRPO, without figures in brackets. */
import { direction } from '../domain/statistics';
import type { Arm, Report } from './model';
import { samePolicy } from './recommendation';

const rounded = ({ successRate }: Arm): string => `${Math.round(100 * (successRate?.value ?? 0))}%`;

/** Undefined where no policy was evaluated. */
export function answerOf({ arms = [], recommendation, comparisons = [] }: Report): string | undefined {
  const shipped = arms.find(({ name }) => name === recommendation?.arm);
  const base = arms.find(({ role }) => role === 'base');
  if (!shipped || !base) return undefined;
  if (shipped === base)
    return `Ship the base model as it is: it solves ${rounded(base)} of the test tasks, and nothing that was trained is significantly better.`;
  const first = `Ship ${nameOf(shipped, arms)}: ${rounded(shipped)} of the test tasks, base ${rounded(base)}.`;
  const routed = arms.find(({ role }) => role === 'routed');
  const plain = arms.find(({ kind, status }) => kind === 'grpo_target' && status === 'evaluated');
  const other = shipped === plain ? routed : plain;
  if (!other?.successRate || samePolicy(shipped, other)) return first;
  const [its, ours] = [other.allRollouts.value, shipped.allRollouts.value];
  const spent = its && ours ? ` with ${ratioText(its / ours)} rollouts` : '';
  const what = other === plain ? 'GRPO on the target' : 'Training on capabilities';
  const pair = comparisons.find(({ arm, against }) =>
    [arm, against].every((n) => n === shipped.name || n === other.name),
  );
  return `${first} ${what} comes to ${rounded(other)}${spent}; ${certaintyOf(pair)}.`;
}

function nameOf(arm: Arm, arms: readonly Arm[]): string {
  const { name, role, sameAs } = arm;
  if (role !== 'routed') return name;
  const same = arms.find((one) => one.name === sameAs);
  if (!same) return `${name}, which routes between the adapters`;
  const parts = same.name.split('+').length;
  if (same.role === 'sum') return `the sum of ${['two', 'three', 'four', 'five'][parts - 2] ?? parts} adapters`;
  return same.role === 'adapter' ? `the adapter ${same.name}` : same.name;
}

/** `half the`, `as many`, `1.8 times the`. */
function ratioText(ratio: number): string {
  if (ratio > 0.95 && ratio < 1.05) return 'as many';
  if (ratio > 0.45 && ratio < 0.55) return 'half the';
  return ratio < 1 ? `${Math.round(100 * ratio)}% of the` : `${ratio.toFixed(1)} times the`;
}

function certaintyOf(pair: NonNullable<Report['comparisons']>[number] | undefined): string {
  if (!pair || pair.difference.value === null) return 'the two were not tested against each other';
  return direction(pair.difference.interval) === undefined
    ? 'there is no significant difference on these tasks'
    : 'the two differ significantly on these tasks; each was trained once';
}
