/** What a campaign file could say in earlier versions. A file that still says it gets a line with the reason and the fix. */
const UNPAID = 'measured without benefit';

/** Paths as in messages, `[]` for any entry of a list; with `value`, one value of the field alone. */
export const removed: readonly { path: string; value?: string; why: string }[] = [
  { path: 'arms[].kind', value: 'distill', why: `${UNPAID} (docs/decisions.md)` },
  { path: 'arms[].kind', value: 'trace_then_target', why: `${UNPAID} (docs/decisions.md)` },
  {
    path: 'arms[].kind',
    value: 'trace_then_joint',
    why: 'composites.share does the same (docs/decisions.md)',
  },
  { path: 'router.learnedWeights', why: `${UNPAID} (docs/decisions.md)` },
  { path: 'calibration.easierShare', why: 'no environment was ever accepted with them (docs/decisions.md)' },
  {
    path: 'composites.environment',
    why: '`mixed` is what there is; `written` paid nothing (docs/decisions.md)',
  },
  { path: 'evaluation.plainRequests', why: 'no policy ever collapsed (docs/decisions.md)' },
];

/** One entry per removed field, or value of a field, in what a file says. */
export function findRemoved(file: unknown, path: PropertyKey[] = []): { path: PropertyKey[]; text: string }[] {
  if (typeof file === 'object' && file !== null)
    return Object.entries(file).flatMap(([key, value]) => {
      const here = [...path, Array.isArray(file) ? Number(key) : key];
      return [...describe(here, value), ...findRemoved(value, here)];
    });
  return [];
}

function describe(path: PropertyKey[], value: unknown) {
  const name = (index: (n: number) => string) =>
    path
      .map((key) => (typeof key === 'number' ? index(key) : `.${String(key)}`))
      .join('')
      .slice(1);
  const found = removed.find((one) => one.path === name(() => '[]') && (one.value ?? value) === value);
  if (!found) return [];
  const what = name((n) => `[${n}]`) + (found.value === undefined ? '' : ` ${found.value}`);
  const fix = path[0] === 'arms' ? 'delete the arm' : 'delete the line';
  return [{ path, text: `${what}: removed in 0.2: ${found.why}; ${fix}` }];
}
