import { type LabelPass } from '../../../src/domain/capability';
import { majorityOf, partitionProblem, selectCapabilities } from '../../../src/domain/selection';

const rule = { rho: 0.1, delta: 0.2, votes: 2, evidence: 8 };
type Labels = LabelPass['labels'][string];

/** Labels by their first letters, failed ones before the slash: "LP/N" is of f0, f1 and p0. A dot is a trajectory without one. */
function labelsOf(written: string): Labels {
  const [failed = '', passed = ''] = written.split('/');
  const ids = (letters: string, outcome: 'f' | 'p', wanted: string) =>
    [...letters].flatMap((letter, n) => (letter === wanted ? [`${outcome}${n}`] : []));
  return {
    lacking_failed: ids(failed, 'f', 'L'),
    present_failed: ids(failed, 'f', 'P'),
    na_failed: ids(failed, 'f', 'N'),
    lacking_passed: ids(passed, 'p', 'L'),
    present_passed: ids(passed, 'p', 'P'),
    na_passed: ids(passed, 'p', 'N'),
  };
}
const totalsOf = (written = '') => {
  const [failed = '', passed = ''] = written.split('/');
  return { total_failed: failed.length, total_passed: passed.length };
};
/** A pass, and as many trajectories as its first capability has. */
const passOf = (written: Record<string, string>, attempt = 0): LabelPass => ({
  attempt,
  totals: totalsOf(Object.values(written)[0]),
  labels: Object.fromEntries(Object.entries(written).map(([name, letters]) => [name, labelsOf(letters)])),
});

describe('selection', () => {
  const lacking = passOf({ check_status: 'LLP/P' });

  it('counts a planned pass that is missing as one that did not vote', () => {
    const selection = selectCapabilities({ passes: [lacking, lacking], rule: { ...rule, passes: 3 } });
    expect(selection).toMatchObject({
      passes: 2,
      capabilities: [{ votes: 2, passes: 2, coverage: { mean: 2 / 3, std: 0 }, selected: true }],
    });
    expect(selection.reason).toBeUndefined();
  });

  const unlabeled = (written: string) => ({ ...passOf({ any: written }), labels: {} });
  it.each([
    ['fewer passes (1) than votes (2): add passes or lower votes', [lacking], {}],
    ['no failed trajectory, so there is nothing to analyse', Array(2).fill(unlabeled('/PPP')), {}],
    ['no passed trajectory, so there is nothing to contrast the failures with', Array(2).fill(unlabeled('LLL')), {}],
  ])('selects nothing and says why: %s', (reason, passes: LabelPass[], changes) => {
    const selection = selectCapabilities({ passes, rule: { ...rule, ...changes } });
    expect(selection).toMatchObject({ passes: passes.length, reason });
    expect(selection.capabilities.filter(({ selected }) => selected)).toEqual([]);
  });
});

test.each([
  [
    'leaves out, has alone or has twice',
    { ask_user: { ...labelsOf('/NN'), na_failed: ['f0', 'x7'], present_failed: ['f0'] } },
  ],
  ['lacks of the totals', { act_first: labelsOf('NN.') }],
])('a partition names the capability and what it %s', (_, changed: Record<string, Labels>) => {
  const pass = passOf({ act_first: 'NN/N', ask_user: 'NN/N' });
  expect(partitionProblem(pass)).toBeUndefined();
  const [name] = Object.keys(changed);
  expect(partitionProblem({ ...pass, labels: { ...pass.labels, ...changed } })).toContain(`"${name}"`);
});

it.each([
  [['LACKING', 'LACKING', 'PRESENT'] as const, 'LACKING'],
  [['LACKING', 'PRESENT'] as const, 'PRESENT'],
  [['LACKING', 'NA'] as const, 'NA'],
])('the majority of %j is %s', (labels, majority) => {
  expect(majorityOf(labels.map((label) => ({ label })))).toBe(majority);
});
