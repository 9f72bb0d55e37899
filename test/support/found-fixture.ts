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
  selection!.decision = 'approved';
  const [lost, thin, elsewhere] = selection!.candidates;
  lost!.citations = [
    citation(12, 'failed', 'It cancels one of two items and says that both are done.'),
    citation(31, 'passed', 'It goes through both items before it answers.'),
    { ...citation(12, 'failed', 'One call, two requests. '.repeat(20)), votes: 'lacking in 10 of 10 passes' },
    { ...citation(40, 'failed', 'It stops after the first.'), votes: 'lacking in 7 of 10 passes' },
  ];
  thin!.citations = [{ rollout: ref('elsewhere').sha256, message: 3, says: 'It is not there.', context: [] }];
  elsewhere!.citations = [citation(7, 'failed', 'It takes the first of two lamps.')];
  selection!.faults = {
    found: [
      { of: 'environment', what: 'The look-up answers nothing.', citations: [citation(90, 'failed', 'No record.')] },
      { of: 'user', what: 'The user asks for another item than the task says.', citations: [] },
    ],
    counts: {
      environment: figure('selection.faults.environment', 9, 214, { unit: 'count' }),
      user: figure('selection.faults.user', 3, 214, { unit: 'count' }),
    },
    examples: [{ ...citation(90, 'failed', 'No record.'), votes: 'environment in 9 of 10 passes' }],
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
    { role: 'synthesizer', step: `environment: ${selection!.candidates[0]!.name}`, ...costOf(5) },
  ];
  cost!.languageModel = {
    steps,
    total: { step: 'all', ...costOf(38, 4.52), unpriced: 5 },
    budget: { tokens: 5_000_000, dollars: 10 },
  };
  return draft;
};
