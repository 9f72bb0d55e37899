/** The demo report as a campaign leaves it whose analyst and synthesizer ask a language model. Made up, but consistent. */
import type { Spent } from '../../src/domain/endpoints';
import type { ReportDraft } from '../../src/report/model';
import type { ReportedCitation, ReportedMessage } from '../../src/report/capability-model';
import { figure, ref, reportFixture } from './report-fixture';

const message = (at: number, role: ReportedMessage['role'], text: string): ReportedMessage => ({
  message: at,
  role,
  text,
});

const citation = (task: number, outcome: 'failed' | 'passed', says: string): ReportedCitation => ({
  rollout: ref(`rollout ${task}`).sha256,
  task: `train-${task}`,
  attempt: 0,
  outcome,
  message: 4,
  says,
  context: [
    message(3, 'tool', `order ${task} pending ${'blue lamp 12 ; '.repeat(40)}`),
    message(4, 'assistant', 'I have cancelled both.\ncalls cancel_item({"item":"blue lamp"})'),
    { ...message(5, 'user', 'And the other one?'), missing: 12_000 },
  ],
});

/** A new one each time: tests may change it. */
export const foundFixture = (): ReportDraft => {
  const draft = reportFixture();
  const { selection, capabilities, cost } = draft;
  const [first, second, third] = selection!.candidates.map(({ name }) => name) as [string, string, string];
  for (const [i, { name }] of selection!.candidates.entries())
    for (const row of [selection!.candidates[i]!, ...capabilities!.filter((one) => one.name === name)])
      row.agreement = figure(`selection.${name}.agreement`, 0.86 - 0.09 * i, 340);
  selection!.decision = 'approved with edits';
  selection!.evidence = [
    {
      capability: first,
      citations: [
        citation(12, 'failed', 'It cancels one of two items and says that both are done.'),
        citation(31, 'passed', 'It goes through both items before it answers.'),
      ],
      lacking: [
        { ...citation(12, 'failed', 'One call, two requests. '.repeat(20)), lacking: 10, passes: 10, citing: 9 },
        { ...citation(40, 'failed', 'It stops after the first.'), lacking: 7, passes: 10, citing: 4 },
      ],
    },
    {
      capability: second,
      citations: [{ rollout: ref('elsewhere').sha256, message: 3, says: 'It is not there.', context: [] }],
    },
    { capability: third, citations: [citation(7, 'failed', 'It takes the first of two lamps.')] },
  ];
  selection!.faults = {
    found: [
      { of: 'environment', what: 'The look-up answers nothing.', citations: [citation(90, 'failed', 'No record.')] },
      { of: 'user', what: 'The user asks for another item than the task says.', citations: [] },
    ],
    trajectories: {
      environment: figure('selection.faults.environment', 9, 214, { unit: 'count' }),
      user: figure('selection.faults.user', 3, 214, { unit: 'count' }),
      examples: [
        {
          rollout: ref('rollout 90').sha256,
          task: 'train-90',
          attempt: 0,
          outcome: 'failed',
          of: 'environment',
          reason: 'No record.',
          votes: 9,
          passes: 10,
        },
      ],
    },
  };
  capabilities![3]!.rounds![2]!.decision = 'rejected: too narrow';
  const costOf = (requests: number, dollars?: number) => ({
    requests,
    promptTokens: 41_000 * requests,
    cachedTokens: 30_000 * requests,
    completionTokens: 2_100 * requests,
    ...(dollars !== undefined && { dollars }),
  });
  const steps: Spent[] = [
    { role: 'analyst', step: 'discovery', ...costOf(3, 0.42) },
    { role: 'analyst', step: 'labels', ...costOf(30, 4.1) },
    { role: 'synthesizer', step: `environment: ${first}`, ...costOf(5) },
  ];
  cost!.languageModel = {
    roles: [
      { role: 'analyst', ...costOf(33, 4.52) },
      { role: 'synthesizer', ...costOf(5) },
    ],
    steps,
    total: { step: 'all', ...costOf(38, 4.52), unpriced: 5 },
    budget: { tokens: 5_000_000, dollars: 10 },
  };
  return draft;
};
