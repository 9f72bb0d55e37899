/** The router, and the run itself: configuration, rollouts, cost, links to Temporal. */
import type { Cost as Spent } from '../../src/domain/endpoints';
import { dollarsText, duration, percent, wholeNumber } from '../../src/report/format';
import type { Report } from '../../src/report/model';
import { Facts, Fold, From, Num, Quiet, Section, Table } from './parts';
import { shortNames } from './policies';

export function Router({ report: { router, capabilities = [], arms } }: { report: Report }) {
  if (!router) return <p>No router was fitted.</p>;
  const { crossValidation: cv, choices = [], errors, latency, constant, kind, helps, failed = [], noSums } = router;
  const short = shortNames(arms);
  const helping = capabilities.filter(({ statement }) => statement?.verdict === 'helps').map(({ name }) => name);
  const rows = [
    ...(cv.forms ?? [{ form: 'routed', successRate: cv.routed, kept: false }]).map(({ form, successRate, kept }) => ({
      name: kept ? `${form}, kept` : form,
      successRate,
    })),
    { name: `best single policy: ${short(cv.bestSingle.option)}`, successRate: cv.bestSingle.successRate },
    { name: 'base', successRate: cv.base },
    { name: 'oracle', successRate: cv.oracle },
  ];
  return (
    <>
      <Section title="Router">
        <p>
          Kind {kind}
          {constant !== undefined && `: it gives every conversation to ${short(constant)}`}. In cross-validation on the
          train split it {helps ? 'helps' : 'does not help'}.
        </p>
        {noSums !== undefined && (
          <p>
            No adapters were merged: {noSums}
            {helping.length > 0 && `. With the test tasks, which came later, ${helping.join(', ')} helps`}.
          </p>
        )}
        {failed.map(({ name, reason }) => (
          <p key={name} class="bad">
            It cannot choose {short(name)}: {reason}
          </p>
        ))}
        <Table
          label="Cross-validation"
          rows={rows}
          columns={[
            ['policy', ({ name }) => name],
            ['cross-validated success rate', (row) => row.successRate],
          ]}
        />
        {cv.forms && (
          <Quiet>
            All forms are compared on the same folds of the train split. `constant` is the best single policy, chosen
            within the folds. Another form is kept only if it is significantly better (paired permutation test over the
            tasks).
          </Quiet>
        )}
      </Section>
      {choices.length > 0 && (
        <Table
          title="Choices on the test split"
          rows={choices}
          columns={[
            ['policy', ({ option }) => short(option)],
            ['share of conversations', ({ share }) => share],
            ['success rate of these', ({ successRate }) => successRate],
            choices.some(({ probability }) => probability) && ['mean probability', ({ probability }) => probability],
          ]}
        >
          {latency && (
            <p>
              Median time of a choice <Num of={latency} />
            </p>
          )}
          {errors && (
            <p>
              Test rollouts that failed because the router could not choose <Num of={errors} />
            </p>
          )}
        </Table>
      )}
    </>
  );
}

/** Returns the fields of a configuration by their path. */
function fieldsOf(value: unknown, path = ''): { path: string; value: string }[] {
  if (typeof value !== 'object' || value === null) return [{ path, value: String(value) }];
  const entries = Object.entries(value);
  if (entries.length === 0) return [{ path, value: Array.isArray(value) ? '[]' : '{}' }];
  return entries.flatMap(([name, inner]) => fieldsOf(inner, path === '' ? name : `${path}.${name}`));
}

export function Run({ report, links = {} }: { report: Report; links?: Record<string, string> | undefined }) {
  const { campaign, baseCheck, capabilities = [], rollouts, leakage, cost } = report;
  const { config, target } = campaign;
  const children = capabilities.flatMap(({ workflowId }) => workflowId ?? []);
  const seconds = cost?.wallSeconds.reduce((sum, one) => sum + one.seconds, 0);
  return (
    <>
      <Section title="Run">
        <Facts
          facts={[
            ['base model', campaign.baseModel],
            ['target', `${target.name} ${target.version}`],
            ...(target.notes ?? []).map((note) => ['note on the target', note] as const),
            ['started', campaign.startedAt],
            ['finished', campaign.finishedAt],
            ...(seconds === undefined ? [] : [['elapsed, with outages', duration(seconds)] as const]),
            ['configuration', <code>{campaign.configSha256}</code>],
            ...(baseCheck ? [['base model check', <From of={baseCheck.from} />] as const] : []),
          ]}
        />
        <h3>Workflows in Temporal</h3>
        <ul>
          {[campaign.workflowId, ...children].map((id) => (
            <li key={id}>{links[id] === undefined ? <code>{id}</code> : <a href={links[id]}>{id}</a>}</li>
          ))}
        </ul>
        {Object.keys(links).length === 0 && (
          <Quiet>
            <code>campaign ui</code> opens Temporal’s UI.
          </Quiet>
        )}
      </Section>
      {config && (
        <Section title="Configuration">
          <Fold summary="All fields, with defaults">
            <Facts facts={fieldsOf(config).map((one) => [one.path, one.value])} />
          </Fold>
        </Section>
      )}
      {rollouts && <Rollouts rollouts={rollouts} cost={cost} />}
      {leakage && (
        <Section title="Leakage check">
          <p class={leakage.passed ? undefined : 'bad'}>
            {leakage.passed ? 'Passed' : 'Failed'}: {leakage.textsChecked} texts against {leakage.testTasks} test tasks
            {leakage.seedsLeftOut > 0 &&
              `; ${leakage.seedsLeftOut} seeds were not used, since they or their twin contain a test task’s text`}
            . <From of={leakage.from} />
          </p>
          {leakage.hits.map(({ where, task }, n) => (
            <p key={n} class="bad">
              {where} contains the text of {task}
            </p>
          ))}
        </Section>
      )}
      {cost && <Cost cost={cost} />}
    </>
  );
}

type ReportedCost = NonNullable<Report['cost']>;

function Rollouts({ rollouts, cost }: { rollouts: NonNullable<Report['rollouts']>; cost: ReportedCost | undefined }) {
  const { scored, broken, byPurpose, brokenByError } = rollouts;
  const rows = [
    ...byPurpose,
    { purpose: 'all', scored, broken, promptTokens: cost?.promptTokens, completionTokens: cost?.completionTokens },
  ];
  return (
    <Table
      title="Rollouts"
      rows={rows}
      columns={[
        ['purpose', ({ purpose }) => purpose.replaceAll('_', ' ')],
        ['scored', (row) => row.scored],
        ['failed (infrastructure)', (row) => row.broken],
        ['prompt tokens', ({ promptTokens }) => promptTokens],
        ['completion tokens', ({ completionTokens }) => completionTokens],
      ]}
    >
      <Table
        label="Infrastructure failures by cause"
        rows={brokenByError}
        columns={[
          ['cause of failure', ({ errorType }) => errorType],
          ['message', ({ message, task }) => `${message} (task ${task})`],
          ['rollouts', (row) => row.rollouts],
        ]}
      />
    </Table>
  );
}

const secondsText = (seconds: number | undefined): string | undefined =>
  seconds === undefined ? undefined : `${seconds.toPrecision(2)} s`;

function Cost({ cost: { wallSeconds, secondsPerRollout = {}, languageModel } }: { cost: ReportedCost }) {
  const facts = [
    ...wallSeconds.map(({ stage, seconds }) => [`stage ${stage}`, duration(seconds)] as const),
    ['a base rollout', secondsText(secondsPerRollout.rollout)] as const,
    ['a training rollout with its update', secondsText(secondsPerRollout.training)] as const,
  ];
  return (
    <>
      <Section title="Time">
        <Facts facts={facts.filter(([, value]) => value)} />
        <Quiet>Stages are from start to end, with outages, approvals and queues.</Quiet>
      </Section>
      {languageModel && (
        <Section title="Language models">
          <LanguageModels spent={languageModel} />
        </Section>
      )}
    </>
  );
}

const tokensOf = ({ promptTokens, completionTokens }: Spent): number => promptTokens + completionTokens;

/** What analyst, synthesizer, baselines, simulated users and judges asked, as the endpoints count it. */
export function LanguageModels({
  spent: { roles, steps, total, budget },
}: {
  spent: NonNullable<ReportedCost['languageModel']>;
}) {
  const against = (used: number | undefined, limit: number | undefined, show: (n: number) => string) =>
    limit === undefined ? '' : ` of ${show(limit)}${used === undefined ? '' : ` (${percent(used / limit)})`}`;
  const rows = [
    ...steps.map((one) => ({ ...one, role: one.role ?? '' })),
    ...roles.map((one) => ({ ...one, step: 'all' })),
  ];
  return (
    <>
      <p>
        {wholeNumber(total.requests)} requests, {wholeNumber(tokensOf(total))} tokens
        {against(tokensOf(total), budget.tokens, wholeNumber)}
        {(total.dollars !== undefined || budget.dollars !== undefined) &&
          `, ${dollarsText(total.dollars)}${against(total.dollars, budget.dollars, dollarsText)}`}
        {total.unpriced ? `, ${wholeNumber(total.unpriced)} requests without a price` : ''}
      </p>
      <Table
        label="Language models by role and step"
        rows={[...rows, { ...total, role: 'all', step: 'all' }]}
        columns={[
          ['role', ({ role }) => role],
          ['step', ({ step }) => step],
          ['requests', ({ requests }) => requests],
          ['prompt tokens', ({ promptTokens }) => promptTokens],
          ['of them cached', ({ cachedTokens }) => cachedTokens],
          ['completion tokens', ({ completionTokens }) => completionTokens],
          ['dollars', ({ dollars }) => dollarsText(dollars), ({ dollars }) => dollars ?? -1],
        ]}
      />
    </>
  );
}
