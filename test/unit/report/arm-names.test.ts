/** Names of arms where there is little room, and which sums are folded. */
import type { Arm } from '../../../src/report/model';
import { foldSums, shortName } from '../../../src/report/format';

test('a long name is cut in its middle, a sum in each of its parts', () => {
  expect(shortName('complete_all_requested_actions', 30)).toBe('complete_all_requested_actions');
  expect(shortName('complete_all_requested_actions', 16)).toBe('complete_a…tions');
  const [a, b, c] = ['complete_all_requested_actions', 'refuse_forbidden_actions', 'tell_requested_information'];
  expect(shortName(`${a}+${b}+${c}`, 34)).toBe('comple…ons+refuse…ons+tell_r…ion');
  expect(shortName(`${a}+${b}`, 34)).toBe('complete_a…tions+refuse_for…tions');
});

test('short names are never longer than they may be, and sums of the same parts stay apart', () => {
  const parts = [
    'complete_all_requested_actions',
    'refuse_forbidden_actions',
    'tell_requested_information',
    'look_it_up',
  ];
  const sums = [parts.slice(0, 2), parts.slice(0, 3), parts.slice(1), parts, [parts[0]!, parts[2]!]].map((p) =>
    p.join('+'),
  );
  for (const room of [18, 24, 30, 34]) {
    const short = sums.map((sum) => shortName(sum, room));
    expect(short.filter(({ length }) => length > room)).toEqual([]);
    if (room >= 30) expect(new Set(short).size).toBe(sums.length);
  }
  expect(shortName('x'.repeat(9) + '+y'.repeat(20), 12)).toHaveLength(12);
});

const arm = (name: string, role: Arm['role'], value: number | null): Arm =>
  ({ name, role, successRate: { value } }) as unknown as Arm;

test('a few sums stand among the other arms; of many the best, in their place', () => {
  const others = [arm('base', 'base', 0.2), arm('a', 'adapter', 0.3)];
  const sums = [0.4, 0.7, null, 0.6, 0.7].map((value, n) => arm(`s${n}`, 'sum', value));
  const trace = arm('trace', 'routed', 0.8);
  const few = [...others, ...sums.slice(0, 4), trace];
  expect(foldSums(few)).toEqual({ shown: few, folded: [] });
  const { shown, folded } = foldSums([...others, ...sums, trace]);
  expect(shown.map(({ name }) => name)).toEqual(['base', 'a', 's1', 's3', 's4', 'trace']);
  expect(folded.map(({ name }) => name)).toEqual(['s0', 's2']);
  // A gate is neither folded nor in the way of a sum.
  const gate = arm('gated', 'sum', 0.1);
  const among = foldSums([...others, ...sums, gate, trace]);
  expect(among.shown).toEqual([...shown.slice(0, -1), gate, trace]);
  expect(among.folded).toEqual(folded);
});
