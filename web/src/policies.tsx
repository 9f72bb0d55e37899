/** The evaluated policies: which to ship, in one table with short names, and what is behind each row. */
import { measuredText, percent, testText, TEST, wholeNumber } from '../../src/report/format';
import type { Arm, Report, TaskGroup } from '../../src/report/model';
import { Bar, Chart, type Mark } from './charts';
import { type Column, Fold, Num, Quiet, Section, Sentence, Table, Text } from './parts';

/** Returns short names: letters for adapters, `A + B` for a merged one. */
export function shortNames(arms: readonly Pick<Arm, 'name' | 'role'>[] = []): (name: string) => string {
  const letters = new Map(
    arms.flatMap(({ name, role }) => (role === 'adapter' ? [name] : [])).map((name, n) => [name, letterOf(n)]),
  );
  const bound = arms.find(({ role }) => role === 'oracle')?.name;
  return (name) =>
    name === bound
      ? 'oracle'
      : name
          .split('+')
          .map((part) => letters.get(part) ?? part)
          .join(' + ');
}

const letterOf = (n: number): string => String.fromCharCode(65 + (n % 26)) + (n < 26 ? '' : Math.floor(n / 26));

/** A row of the table: a policy, and the arms that are the same policy. */
interface Row {
  arm: Arm;
  same: Arm[];
}

/** Arms that are one policy are one row: that of the base model, else the routed policy, else the first. */
function rowsOf(arms: readonly Arm[]): Row[] {
  const groups = new Map<string, Arm[]>();
  for (const arm of arms) {
    const key = arm.sameAs ?? arm.name;
    groups.set(key, [...(groups.get(key) ?? []), arm]);
  }
  return [...groups.values()].map((group) => {
    const arm = ['base', 'routed'].flatMap((role) => group.filter((one) => one.role === role))[0] ?? group[0]!;
    return { arm, same: group.filter((one) => one !== arm) };
  });
}

export const roleNames: Record<Arm['role'], string> = {
  base: 'base model',
  adapter: 'adapter',
  merged: 'merged adapter',
  routed: 'routed policy',
  oracle: 'share of tasks that any choice of the router solves; no policy',
  baseline: 'baseline',
};

function PolicyName({ row: { arm, same }, short }: { row: Row; short: (name: string) => string }) {
  const own = short(arm.name);
  const what = [
    arm.role === 'adapter' ? arm.name : roleNames[arm.role],
    arm.builtOn && `on ${arm.builtOn.map(short).join(', ')}`,
    same.length > 0 && `the same policy as ${same.map(({ name }) => short(name)).join(', ')}`,
  ];
  return (
    <>
      <b>
        <Text text={own} />
      </b>
      <span class="quiet below">
        <Text text={what.filter(Boolean).join('; ')} />
      </span>
    </>
  );
}

/** The success rate with its interval as a bar. */
function Rate({ arm, end, base }: { arm: Arm; end: number; base: number | undefined }) {
  const { successRate: rate, status, reason } = arm;
  if (status === 'failed') return <span class="bad">failed: {reason}</span>;
  if (!rate) return null;
  return (
    <div class="rate">
      {rate.value !== null && <Bar value={rate.value} {...rate.interval} end={end} reference={base} />}
      <Num of={rate} />
    </div>
  );
}

/** Policies by success rate, with base and difference; merged adapters that are not shown elsewhere are collapsed. */
export function Policies({ arms, shipped }: { arms: readonly Arm[]; shipped?: string | undefined }) {
  const short = shortNames(arms);
  const rows = rowsOf(arms);
  const isMerged = ({ arm }: Row) => arm.role === 'merged' && arm.name !== shipped;
  const merged = rows.filter(isMerged);
  const rates = merged.flatMap(({ arm }) => arm.successRate?.value ?? []);
  const end = Math.max(0.1, ...arms.map(({ successRate: rate }) => rate?.interval?.high ?? rate?.value ?? 0));
  const base = arms.find(({ role }) => role === 'base')?.successRate?.value ?? undefined;
  const columns: Column<Row>[] = [
    ['policy', (row) => <PolicyName row={row} short={short} />, ({ arm }) => short(arm.name)],
    ['success rate', ({ arm }) => <Rate arm={arm} end={end} base={base} />, ({ arm }) => arm.successRate?.value ?? -1],
    ['against base', ({ arm }) => arm.differenceToBase],
    ['rollouts', ({ arm }) => arm.allRollouts],
  ];
  const table = (label: string, of: Row[]) => (
    <Table
      rows={of}
      columns={columns}
      label={label}
      classOf={({ arm, same }) =>
        [arm, ...same].some(({ name }) => name === shipped) ? `${arm.role} shipped` : arm.role
      }
    />
  );
  return (
    <>
      {table(
        'Policies on test tasks',
        rows.filter((row) => !isMerged(row)),
      )}
      {merged.length > 0 && (
        <Fold
          summary={`${merged.length} merged adapter${merged.length === 1 ? '' : 's'}${rates.length > 0 ? `, ${percent(Math.min(...rates))} to ${percent(Math.max(...rates))}` : ''}`}
        >
          {table('Merged adapters on test tasks', merged)}
        </Fold>
      )}
    </>
  );
}

/** Success rate of base, the routed policy and the baselines against all rollouts spent. */
function SpendingChart({ arms }: { arms: readonly Arm[] }) {
  const lines = { routed: 1, baseline: 2, base: 4 } as Record<string, number>;
  const marks = arms.flatMap(({ name, role, successRate: rate, allRollouts }): Mark[] => {
    const line = lines[role];
    if (line === undefined || !rate || rate.value === null) return [];
    const x = role === 'base' ? 0 : (allRollouts.value ?? 0);
    const title = `${name}, ${wholeNumber(x)} rollouts: ${measuredText(rate)}, n ${rate.n}`;
    return [{ x, y: rate.value, line, name, low: rate.interval?.low, high: rate.interval?.high, title }];
  });
  if (marks.length < 2) return null;
  return (
    <Chart
      data={{
        ...{ label: 'Success rate against all rollouts spent', width: 520, height: 300, x: 'rollouts' },
        ...{ shares: true, lines: [], marks },
      }}
    />
  );
}

/** All figures of each policy. */
export function PolicyDetails({ report }: { report: Report }) {
  const { arms = [], budget, comparisons = [], groups = [] } = report;
  const short = shortNames(arms);
  const named = (name: string) => arms.find((arm) => arm.name === name);
  const reasons = [...new Set(arms.flatMap(({ stopReasons = [] }) => stopReasons.map(({ reason }) => reason)))];
  return (
    <>
      {comparisons.length > 0 && (
        <Table
          title="The routed policy and each baseline"
          rows={comparisons}
          columns={[
            ['policies', ({ arm, against }) => `${short(arm)} minus ${short(against)}`],
            ['difference', ({ difference }) => difference],
            [
              'on single tasks',
              ({ arm, against, difference }) =>
                (named(arm)?.sameAs ?? arm) === (named(against)?.sameAs ?? against)
                  ? 'one policy, sampled twice'
                  : testText(difference),
            ],
          ]}
        >
          <Quiet>p: {TEST}. These are differences of one training each: other trainings may differ.</Quiet>
        </Table>
      )}
      <Section title="Training and test">
        {budget && (
          <p>
            Baselines may spend as many training rollouts as all adapters together: <Num of={budget} />
          </p>
        )}
        <Table
          label="Training and test of each policy"
          rows={arms}
          columns={[
            ['policy', ({ name }) => short(name)],
            ['kind', ({ role, kind }) => kind ?? roleNames[role]],
            ['training rollouts', ({ trainingRollouts }) => trainingRollouts],
            ['evaluated after', ({ evaluatedRollouts }) => evaluatedRollouts],
            ['trained on to', ({ trainedTo }) => trainedTo],
            ['test tasks × trials', ({ tasks, trials }) => `${tasks} × ${trials}`],
            ['success rate', ({ successRate }) => successRate],
            ['held-out train tasks', ({ heldOut }) => heldOut],
            ...reasons.map((reason): Column<Arm> => [
              `ended by ${reason.replaceAll('_', ' ')}`,
              ({ stopReasons = [] }) => stopReasons.find((one) => one.reason === reason)?.rollouts,
            ]),
          ]}
        />
        <Quiet>
          Held-out train tasks are those of the target that nothing trained on; a baseline’s checkpoint is chosen by
          them.
        </Quiet>
      </Section>
      {groups.length > 0 && <Groups groups={groups} short={short} />}
    </>
  );
}

function Groups({ groups, short }: { groups: readonly TaskGroup[]; short: (name: string) => string }) {
  const table = (measure: 'successRate' | 'meanReward', label: string) => (
    <Table
      label={label}
      rows={groups[0]?.arms ?? []}
      columns={[
        ['policy', ({ arm }) => short(arm)],
        ...groups.map(({ group, tasks, arms }): Column<{ arm: string }> => [
          `${group} (${tasks})`,
          ({ arm }: { arm: string }) => arms.find((one) => one.arm === arm)?.[measure],
        ]),
      ]}
    />
  );
  return (
    <Section title="Test tasks by group">
      {table('successRate', 'Success rate by group')}
      <h3>Mean reward</h3>
      {table('meanReward', 'Mean reward by group')}
    </Section>
  );
}

/** The first view: which policy to ship, at which price, what is doubtful. */
export function Summary({ report }: { report: Report }) {
  const { campaign, baseCheck, recommendation, verdict, arms = [], cost, base } = report;
  const [first, ...others] = recommendation?.sentences ?? [];
  const doubts = verdict.slice(recommendation ? 1 : 0);
  const { target, seed, trainingSeed, status, stage } = campaign;
  return (
    <>
      {first && (
        <p class="answer">
          <Sentence of={first} />
        </p>
      )}
      {others.map((one) => (
        <p key={one.text} class="strong">
          <Sentence of={one} />
        </p>
      ))}
      <p class="quiet">
        {[
          stage === 'evaluation' ? status : `${status}, stopped after stage ${stage}`,
          `${target.name} ${target.version}`,
          `seed ${seed}${trainingSeed === undefined ? '' : `, training seed ${trainingSeed}`}`,
        ].join(' · ')}
        {cost && (
          <>
            {' '}
            · rollouts <Num of={cost.rollouts} />
          </>
        )}
      </p>
      {(baseCheck?.findings ?? []).map((finding) => (
        <p key={finding} class="bad">
          base model: {finding}
        </p>
      ))}
      <div class="columns">
        <div>
          {arms.length > 0 && (
            <>
              <Policies arms={arms} shipped={recommendation?.arm} />
              <Quiet>Rollouts are all that were made to come to the policy, without test rollouts. Dashed: base.</Quiet>
            </>
          )}
          {arms.length === 0 && base && (
            <p>
              base model on train tasks: success rate <Num of={base.successRate} /> mean reward{' '}
              <Num of={base.meanReward} />
            </p>
          )}
        </div>
        <div>
          {doubts.length > 0 && (
            <>
              <h2>What is doubtful</h2>
              <ul class="bad">
                {doubts.map((one) => (
                  <li key={one.text}>
                    <Sentence of={one} />
                  </li>
                ))}
              </ul>
            </>
          )}
          {arms.length > 1 && (
            <>
              <h2>Success rate against rollouts spent</h2>
              <SpendingChart arms={arms} />
            </>
          )}
        </div>
      </div>
      {recommendation && recommendation.tests.length > 0 && (
        <Fold summary="How the policy to ship is chosen">
          <p>
            A policy is better than another if the p of a sign-flip test over the tasks, corrected for all candidates by
            Holm’s method, is below 1 minus the level.
          </p>
          <Table
            label="Tests behind the choice"
            rows={recommendation.tests}
            columns={[
              ['policy', ({ arm, against }) => `${shortNames(arms)(arm)} against ${shortNames(arms)(against)}`],
              ['p', ({ p }) => p.toPrecision(2)],
              ['corrected p', ({ corrected }) => corrected.toPrecision(2)],
              ['better', ({ isBetter }) => (isBetter ? 'yes' : 'no')],
            ]}
          />
        </Fold>
      )}
    </>
  );
}
