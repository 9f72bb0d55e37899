/** The router, and the run itself: configuration, rollouts, cost, links to Temporal. */
import { dollarsText, duration, fieldsOf, wholeNumber } from '../../src/report/format';
import type { Report } from '../../src/report/model';
import { Facts, Fold, From, Quiet, Section, Table, Workflows } from './parts';
import { shortNames } from './policies';

export function Router({ router, arms }: { router: NonNullable<Report['router']>; arms: Report['arms'] }) {
  const { crossValidation: cv, choices = [], constant, kind, helps, failed = [], notMerged } = router;
  const short = shortNames(arms);
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
        {notMerged !== undefined && <p>No adapters were merged: {notMerged}.</p>}
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
      <Table
        title="Choices on the test split"
        rows={choices}
        columns={[
          ['policy', ({ option }) => short(option)],
          ['share of conversations', ({ share }) => share],
          ['success rate of these', ({ successRate }) => successRate],
        ]}
      />
    </>
  );
}

export function Run({ report, links }: { report: Report; links?: Record<string, string> | undefined }) {
  const { campaign, baseCheck, capabilities = [], rollouts, leakage, cost } = report;
  const { config, target, writtenBy: by } = campaign;
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
            ['elapsed, with outages', seconds && duration(seconds)],
            ['configuration', <code>{campaign.configSha256}</code>],
            ['written by', by && `campaign ${by.version}${by.commit ? `, commit ${by.commit}` : ''}`],
            ['base model check', baseCheck && <From of={baseCheck.from} />],
          ]}
        />
      </Section>
      <Workflows ids={[campaign.workflowId, ...children]} links={links} />
      {config && (
        <Section title="Configuration">
          <Fold summary="All fields, with defaults">
            <Facts facts={[...fieldsOf(config)]} />
          </Fold>
        </Section>
      )}
      {rollouts && <Rollouts rollouts={rollouts} cost={cost} />}
      {leakage && (
        <Section title="Leakage check">
          <p class={leakage.passed ? undefined : 'bad'}>
            {leakage.passed ? 'Passed' : 'Failed'}: {leakage.textsChecked} texts against {leakage.testTasks} test tasks
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

function Cost({ cost: { wallSeconds, secondsPerRollout = {}, languageModel } }: { cost: ReportedCost }) {
  return (
    <>
      <Section title="Time">
        <Facts
          facts={[
            ...wallSeconds.map(({ stage, seconds }) => [`stage ${stage}`, duration(seconds)] as const),
            ['a base rollout', secondsPerRollout.rollout && `${secondsPerRollout.rollout.toPrecision(2)} s`],
            [
              'a training rollout with its update',
              secondsPerRollout.training && `${secondsPerRollout.training.toPrecision(2)} s`,
            ],
          ]}
        />
        <Quiet>Stages are from start to end, with outages, approvals and queues.</Quiet>
      </Section>
      {languageModel && <LanguageModels spent={languageModel} />}
    </>
  );
}

/** The requests of analyst, synthesizer, baselines, simulated users and judges, as the endpoints count them. */
export function LanguageModels({
  spent: { steps, total, budget },
}: {
  spent: NonNullable<ReportedCost['languageModel']>;
}) {
  const limits = [
    budget.tokens !== undefined && `${wholeNumber(budget.tokens)} tokens`,
    budget.dollars !== undefined && dollarsText(budget.dollars),
  ].filter(Boolean);
  return (
    <Table
      title="Language models"
      rows={[...steps, { ...total, role: 'all' }]}
      columns={[
        ['role', ({ role }) => role],
        ['step', ({ step }) => step],
        ['requests', ({ requests }) => requests],
        ['prompt tokens', ({ promptTokens }) => promptTokens],
        ['of them cached', ({ cachedTokens }) => cachedTokens],
        ['completion tokens', ({ completionTokens }) => completionTokens],
        ['dollars', ({ dollars }) => dollarsText(dollars)],
        ['without a price', ({ unpriced }) => unpriced],
      ]}
    >
      {limits.length > 0 && <p>Budget: {limits.join(', ')}</p>}
    </Table>
  );
}
