/** Arms where there is little room: short names, and few of many sums. */
import { isLearned } from '../domain/policies';
import type { Arm } from '../domain/reported-arms';

/** A long name, cut in its middle; of a sum every part, so that sums stay apart. */
export function shortName(name: string, longest: number): string {
  if (name.length <= longest) return name;
  const parts = name.split('+');
  const each = Math.max(2, Math.floor((longest - parts.length + 1) / parts.length));
  const short = parts.map((part) => cutInTheMiddle(part, each)).join('+');
  return short.length <= longest ? short : `${short.slice(0, longest - 1)}…`;
}

/** The beginning says more: it keeps two thirds of the room. */
function cutInTheMiddle(name: string, longest: number): string {
  if (name.length <= longest) return name;
  const begin = Math.ceil(((longest - 1) * 2) / 3);
  return `${name.slice(0, begin)}…${name.slice(name.length - (longest - 1 - begin))}`;
}

/** So many sums stand among the other arms; of more the best, so many. */
const [MOST_SUMS, BEST_SUMS] = [4, 3];

/** Sums beyond the best are folded, where there are many; never a gate, which somebody asked for. */
export function foldSums(arms: readonly Arm[]): { shown: Arm[]; folded: Arm[] } {
  const sums = arms.filter(({ name, role }) => role === 'sum' && !isLearned(name));
  if (sums.length <= MOST_SUMS) return { shown: [...arms], folded: [] };
  const rate = ({ successRate }: Arm): number => successRate?.value ?? -1;
  const best = [...sums].sort((a, b) => rate(b) - rate(a)).slice(0, BEST_SUMS);
  const isFolded = (arm: Arm): boolean => sums.includes(arm) && !best.includes(arm);
  return { shown: arms.filter((arm) => !isFolded(arm)), folded: arms.filter(isFolded) };
}
