/** The evaluated policies: the recommendation, one table with short names, and the details of each row. */
import { policiesOf, TEST } from '../../src/report/format';
import type { Arm, Report } from '../../src/report/model';
import { Chart, type ChartPoint } from './charts';
import { type Column, Fold, List, Num, Quiet, Section, Sentence, Table } from './parts';

/** Returns short names: letters for adapters, `A + B` for a merged one. */
export function shortNames(arms: readonly Pick<Arm, 'name' | 'role'>[] = []): (name: string) => string {
  const letters = new Map(
    arms.flatMap(({ name, role }) => (role === 'adapter' ? [name] : [])).map((name, n) => [name, letterOf(n)]),
  );
  return (name) =>
    name
      .split('+')
      .map((part) => letters.get(part) ?? part)
      .join(' + ');
}

const letterOf = (n: number): string => String.fromCharCode(65 + (n % 26)) + (n < 26 ? '' : Math.floor(n / 26));

const roleNames: Record<Arm['role'], string> = {
  base: 'base model',
  adapter: 'adapter',
  merged: 'merged adapter',
  routed: 'routed policy',
  oracle: 'share of tasks that any choice of the router solves; no policy',
  baseline: 'baseline',
};

/** A policy of one run, or of several runs. */
type Policy = Omit<Arm, 'trainingRollouts' | 'tasks' | 'trials'>;

type Row<P> = { arm: P; same: P[] };

interface PoliciesProps<P> {
  arms: readonly P[];
  shipped?: string | undefined;
  more?: readonly Column<P>[];
}

/** Policies with success, difference to base and rollouts; merged adapters that are not shipped are collapsed. */
export function Policies<P extends Policy>({ arms, shipped, more = [] }: PoliciesProps<P>) {
  const short = shortNames(arms);
  const trials = Math.max(...arms.map(({ passPower = [] }) => passPower.length + 1));
  const describe = ({ arm: { name, role, kind, builtOn }, same }: Row<P>): string =>
    [
      role === 'adapter' ? name : kind === name ? roleNames[role] : (kind ?? roleNames[role]),
      builtOn && `on ${builtOn.map(short).join(', ')}`,
      same.length > 0 && `the same policy as ${same.map((one) => short(one.name)).join(', ')}`,
    ]
      .filter(Boolean)
      .join('; ');
  const columns: Column<Row<P>>[] = [
    [
      'policy',
      (row) => (
        <>
          <b>{short(row.arm.name)}</b>
          <span class="quiet below">{describe(row)}</span>
        </>
      ),
    ],
    [
      'success rate',
      ({ arm: { successRate, status, reason } }) =>
        status === 'failed' ? <span class="bad">failed: {reason}</span> : successRate,
    ],
    ...(trials > 1 ? [[`pass^${trials}`, ({ arm }) => arm.passPower?.at(-1)] satisfies Column<Row<P>>] : []),
    ['against base', ({ arm }) => arm.differenceToBase],
    ['rollouts', ({ arm }) => arm.allRollouts],
    ...more.map(([head, cell]): Column<Row<P>> => [head, ({ arm }) => cell(arm)]),
  ];
  const isMerged = ({ arm }: Row<P>) => arm.role === 'merged' && arm.name !== shipped;
  const rows = policiesOf(arms);
  const merged = rows.filter(isMerged);
  const table = (label: string, of: Row<P>[]) => (
    <Table
      rows={of}
      columns={columns}
      label={label}
      classOf={({ arm, same }) => ([arm, ...same].some(({ name }) => name === shipped) ? 'shipped' : '')}
    />
  );
  return (
    <>
      {table(
        'Policies on test tasks',
        rows.filter((row) => !isMerged(row)),
      )}
      {merged.length > 0 && (
        <Fold summary={`${merged.length} merged adapter${merged.length === 1 ? '' : 's'}`}>
          {table('Merged adapters on test tasks', merged)}
        </Fold>
      )}
    </>
  );
}

/** Success rate of base, the routed policy and the baselines against all rollouts spent. */
export function SpendingChart({ arms }: { arms: readonly Policy[] }) {
  const points = arms.flatMap(({ name: series, role, successRate, allRollouts }): ChartPoint[] => {
    if (!/^(base|routed|baseline)$/.test(role) || !successRate || successRate.value === null) return [];
    const { value: y, interval } = successRate;
    return [{ series, x: allRollouts.value ?? 0, y, low: interval?.low, high: interval?.high }];
  });
  if (points.length < 2) return null;
  const label = 'Success rate against rollouts spent';
  return (
    <Section title={label}>
      <Chart data={{ label, width: 520, height: 300, x: 'rollouts', points, hasDots: true, areNamedShares: true }} />
    </Section>
  );
}

/** Rollouts, held-out success and success by group of each policy. */
export function PolicyDetails({ report }: { report: Report }) {
  const { arms = [], comparisons = [], groups = [] } = report;
  const short = shortNames(arms);
  return (
    <>
      <Table
        title="The routed policy and each baseline"
        rows={comparisons}
        columns={[
          ['policies', ({ arm, against }) => `${short(arm)} minus ${short(against)}`],
          ['difference', ({ difference }) => difference],
        ]}
      >
        <Quiet>p: {TEST}. These are differences of one training each: other trainings may differ.</Quiet>
      </Table>
      <Table
        title="Training and test of each policy"
        rows={arms}
        columns={[
          ['policy', ({ name }) => short(name)],
          ['kind', ({ role, kind }) => kind ?? roleNames[role]],
          ['training rollouts', ({ trainingRollouts }) => trainingRollouts],
          ['test tasks × trials', ({ tasks, trials }) => `${tasks} × ${trials}`],
          ['held-out train tasks', ({ heldOut }) => heldOut],
        ]}
      >
        <Quiet>
          Baselines may spend as many training rollouts as all adapters together. Held-out train tasks are those of the
          target that nothing trained on; a baseline’s checkpoint is chosen by them.
        </Quiet>
      </Table>
      <Table
        title="Success rate by group of test tasks"
        rows={groups[0]?.arms ?? []}
        columns={[
          ['policy', ({ arm }) => short(arm)],
          ...groups.map(({ group, tasks, arms: own }): Column<{ arm: string }> => [
            `${group} (${tasks})`,
            ({ arm }) => own.find((one) => one.arm === arm)?.successRate,
          ]),
        ]}
      />
    </>
  );
}

/** The first view: the policy to ship, its price, and the doubts. */
export function Summary({ report }: { report: Report }) {
  const { campaign, baseCheck, recommendation, doubts, arms = [], rollouts, base } = report;
  const { target, seed, trainingSeed, status, stage } = campaign;
  return (
    <>
      {recommendation?.sentences.map((one, n) => (
        <p key={n} class={n === 0 ? 'answer' : 'strong'}>
          <Sentence of={one} />
        </p>
      ))}
      <p class="quiet">
        {[
          stage === 'evaluation' ? status : `${status}, stopped after stage ${stage}`,
          `${target.name} ${target.version}`,
          `seed ${seed}${trainingSeed === undefined ? '' : `, training seed ${trainingSeed}`}`,
        ].join(' · ')}
        {rollouts && (
          <>
            {' '}
            · rollouts <Num of={rollouts.scored} />
          </>
        )}
      </p>
      {baseCheck?.findings.map((finding) => (
        <p key={finding} class="bad">
          base model: {finding}
        </p>
      ))}
      <Policies arms={arms} shipped={recommendation?.arm} />
      {arms.length > 0 && <Quiet>Rollouts are all that the policy needed, without those on test tasks.</Quiet>}
      {arms.length === 0 && base && (
        <p>
          base model on train tasks: success rate <Num of={base.successRate} /> mean reward <Num of={base.meanReward} />
        </p>
      )}
      {doubts.length > 0 && (
        <Section title="What is doubtful">
          <List
            class="bad"
            items={doubts.map((one) => (
              <Sentence of={one} />
            ))}
          />
        </Section>
      )}
      <SpendingChart arms={arms} />
    </>
  );
}
