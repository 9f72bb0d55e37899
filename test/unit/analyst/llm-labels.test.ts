/** Labels by a language model: what is asked, what is taken, what is sent back. */
import { readFileSync } from 'node:fs';
import { readLabels } from '../../../src/analyst/llm/answers';
import { checkPartition } from '../../../src/domain/selection';
import { openPrompts } from '../../../src/language-model/prompts';
import type { Question } from '../../../src/language-model/types';
import { analystAsking, json, trajectory } from '../../support/analyst-llm';

const candidates = ['ask_first', 'read_results'].map((name) => ({
  name,
  definition: `It arises. ${name}.`,
  examples: [],
}));
/** r1 to r4. */
const rollouts = [
  trajectory({ task: 'a', attempt: 0, passed: false }),
  trajectory({ task: 'a', attempt: 1, passed: true }),
  trajectory({ task: 'b', passed: false }),
  trajectory({ task: 'c', passed: true }),
];
const labeled = (ask: unknown = ['PRESENT', 2, 'asks'], read: unknown = ['NA', null, 'nothing to read']) => ({
  failure: null,
  labels: { ask_first: ask, read_results: read },
});
const begins = { of: 'agent', message: 2, reason: 'books another day' };
const blamed = { of: 'user', message: 3, reason: 'ends too early' };
/** Of a trajectory that failed. */
const failed = (...labels: Parameters<typeof labeled>) => ({ ...labeled(...labels), failure: begins });
/** By the outcome in the question. */
const answerTo = (question: Question, id: string) =>
  (question.messages[1]?.content ?? '').match(new RegExp(`^\\[${id}\\] .*: FAILED `, 'm')) ? failed() : labeled();
const idsIn = ({ messages }: Question) =>
  (/Label each of these trajectories: (.*)\.\n/.exec(messages[1]?.content ?? '')?.[1] ?? '').split(', ');

describe('a pass', () => {
  it('labels every trajectory for every candidate, with reasons, and says where every failure begins', async () => {
    const { analyst, questions, askings, told, work } = analystAsking(() => ({
      r1: failed(['LACKING', 2, 'books at once']),
      r2: labeled(),
      r3: { failure: blamed, labels: {} },
      r4: labeled(['LACKING', 3, 'books at once'], ['PRESENT', 4, 'reads it']),
    }));
    const pass = await analyst.label({ ...work, rollouts, candidates, pass: 3 });
    expect(checkPartition(pass)).toEqual([]);
    expect(pass).toEqual({
      attempt: 3,
      totals: { total_failed: 2, total_passed: 2 },
      labels: {
        ask_first: {
          lacking_failed: ['key-a-0'],
          present_failed: [],
          na_failed: ['key-b-0'],
          lacking_passed: ['key-c-0'],
          present_passed: ['key-a-1'],
          na_passed: [],
        },
        read_results: {
          lacking_failed: [],
          present_failed: [],
          na_failed: ['key-a-0', 'key-b-0'],
          lacking_passed: [],
          present_passed: ['key-c-0'],
          na_passed: ['key-a-1'],
        },
      },
      reasons: {
        ask_first: {
          'key-a-0': { reason: 'books at once', message: 2 },
          'key-a-1': { reason: 'asks', message: 2 },
          'key-c-0': { reason: 'books at once', message: 3 },
        },
        read_results: {
          'key-a-0': { reason: 'nothing to read' },
          'key-a-1': { reason: 'nothing to read' },
          'key-c-0': { reason: 'reads it', message: 4 },
        },
      },
      failures: { 'key-a-0': begins, 'key-b-0': blamed },
    });
    expect(questions[0]?.messages.at(-1)?.content).toContain('- ask_first: It arises. ask_first.\n- read_results: ');
    expect(askings.map(({ step }) => step)).toEqual(['labels']);
    expect(told).toEqual(['1/1']);
  });

  it('asks in chunks what all passes ask, byte for byte; only the seed differs', async () => {
    const questionsOf = async (pass: number, given = rollouts) => {
      const { analyst, questions, work } = analystAsking(
        (_, question) => Object.fromEntries(idsIn(question).map((id) => [id, answerTo(question, id)])),
        { labelsPerChunk: 3 },
      );
      const { totals } = await analyst.label({ ...work, rollouts: given, candidates, pass });
      expect(totals).toEqual({ total_failed: 2, total_passed: 2 });
      return questions;
    };
    const [first, second] = [await questionsOf(0), await questionsOf(1, [...rollouts].reverse())];
    expect(first.map(idsIn)).toEqual([
      ['r1', 'r2'],
      ['r4', 'r3'],
    ]);
    expect(second.map(({ messages }) => messages)).toEqual(first.map(({ messages }) => messages));
    expect(new Set([...first, ...second].map(({ seed }) => seed)).size).toBe(2);
  });

  it('shows what discovery showed, in the same bytes up to the question', async () => {
    const before = (name: string) => readFileSync(`prompts/${name}.md`, 'utf8').split('# Your task')[0];
    expect(before('label')).toBe(before('discover'));
    expect(before('label')).toContain('{{trajectories}}');
  });

  it('shows attempts at one task together, and leaves room for the ids of its own trajectories only', async () => {
    const many = Array.from({ length: 700 }, (_, task) =>
      [0, 1, 2].map((attempt) => trajectory({ task: `t${task}`, attempt, passed: attempt > 0 })),
    ).flat();
    // All ids together would have more than what is left of the context.
    const { analyst, questions, work } = analystAsking(
      (_, question) => Object.fromEntries(idsIn(question).map((id) => [id, answerTo(question, id)])),
      { labelsPerChunk: 40, contextTokens: 7500, maxTokens: 1000 },
    );
    await analyst.label({ ...work, rollouts: many, candidates, pass: 0 });
    for (const question of questions) {
      const ids = idsIn(question);
      const ofTask = (id: string) => Math.floor((Number(id.slice(1)) - 1) / 3);
      expect(ids.length).toBe(3 * new Set(ids.map(ofTask)).size);
    }
    expect(questions.flatMap(idsIn)).toHaveLength(2100);
  });

  it('fails as a whole where a chunk stays wrong', async () => {
    const { analyst, work } = analystAsking(
      (_, question) => Object.fromEntries(idsIn(question).map((id) => [id, id === 'r4' ? {} : answerTo(question, id)])),
      { labelsPerChunk: 2 },
    );
    await expect(analyst.label({ ...work, rollouts, candidates, pass: 0 })).rejects.toMatchObject({
      type: 'AnswerInvalid',
      message: expect.stringContaining('r4.labels is no object'),
    });
  });

  it('names trajectories by what people know: `r1.2` is known to the prompt alone', async () => {
    const reason = 'r1.2 books as r2.3 does not, and r4 neither';
    const { analyst, work } = analystAsking((_, question) =>
      Object.fromEntries(
        idsIn(question).map((id) => {
          const answer = answerTo(question, id);
          const labels = id === 'r1' ? { ...answer.labels, ask_first: ['LACKING', 2, reason] } : answer.labels;
          return [id, { ...answer, labels, ...(id === 'r1' && { failure: { ...begins, reason } }) }];
        }),
      ),
    );
    const { reasons, failures } = await analyst.label({ ...work, rollouts, candidates, pass: 0 });
    const told = 'message 2 books as message 3 of task a, attempt 1 does not, and task c, attempt 0 neither';
    expect(reasons?.['ask_first']?.['key-a-0']).toEqual({ reason: told, message: 2 });
    expect(failures?.['key-a-0']).toEqual({ ...begins, reason: told });
  });

  it('asks nothing where there is nothing to label for', async () => {
    const { analyst, questions, work } = analystAsking(() => ({}));
    const pass = await analyst.label({ ...work, rollouts, candidates: [], pass: 0 });
    expect(pass.totals).toEqual({ total_failed: 2, total_passed: 2 });
    expect([pass.labels, questions]).toEqual([{}, []]);
  });
});

describe('what is wrong with an answer', () => {
  const shown = new Map([
    ['r1', rollouts[0]!],
    ['r2', rollouts[1]!],
  ]);
  const read = (answer: unknown, names = candidates.map(({ name }) => name)) =>
    readLabels({ text: typeof answer === 'string' ? answer : json(answer), shown, names });
  /** r1 failed, r2 passed. */
  const both = (first: unknown, second: unknown = labeled()) => ({ r1: first, r2: second });
  const began = (failure: unknown) => both({ ...labeled(), failure });
  const labelOf = (answer: unknown) => {
    const given = read(answer);
    return 'value' in given ? given.value.get('r1')?.labels.get('ask_first') : given.defects;
  };

  it('is nothing, however the message is written', () => {
    expect(labelOf(both(failed(['LACKING', 2, ' why '])))).toEqual({
      label: 'LACKING',
      reason: 'why',
      message: 2,
    });
    expect(labelOf(both(failed(['PRESENT', 'r1.4', 'why'])))).toEqual({
      label: 'PRESENT',
      reason: 'why',
      message: 4,
    });
    expect(labelOf(both(failed(['NA', 'why'])))).toEqual({ label: 'NA', reason: 'why' });
    expect(labelOf(both(failed(['NA', 1, 'why'])))).toEqual({ label: 'NA', reason: 'why', message: 1 });
    // What is not the agent's counts as NA anyway.
    const naming = { failure: blamed, labels: { ask_first: ['NA', null, 'x'], read_results: 'NA' } };
    expect(read(both(naming, { labels: labeled().labels }))).toMatchObject({
      value: new Map<string, object>([
        ['r1', { failure: blamed, labels: new Map() }],
        ['r2', {}],
      ]),
    });
    expect(read(began({ ...begins, message: 'r1.4', reason: ' why ' }))).toMatchObject({
      value: new Map<string, object>([
        ['r1', { failure: { of: 'agent', message: 4, reason: 'why' } }],
        ['r2', {}],
      ]),
    });
    // The labels need not hang on the failure.
    expect(labelOf(both(failed(['LACKING', 4, 'why'])))).toMatchObject({ label: 'LACKING', message: 4 });
  });

  it.each<[unknown, string]>([
    ['none', 'there is no JSON in it; give the answer as one JSON value'],
    [[1], 'the answer is no JSON object; give one with a field for each trajectory'],
    [{ r1: failed() }, 'these trajectories are not labeled: r2; label each of r1, r2'],
    [{ ...both(failed()), r3: labeled() }, '"r3" is none of the trajectories to label, which are r1, r2'],
    [both({ failure: begins }), 'r1.labels is no object; write "r1": {"failure": ..., "labels": {...}}'],
    [
      both({ failure: begins, labels: { ask_first: ['NA', null, 'x'] } }),
      'r1.labels lacks read_results; label every capability, NA where it does not arise',
    ],
    [
      both({ failure: begins, labels: { ...labeled().labels, ask: 1 } }),
      'r1.labels has "ask", which is none of the capabilities ask_first, read_results',
    ],
    [
      both(failed(['ABSENT', 1, 'x'])),
      'r1.labels.ask_first is ["ABSENT",1,"x"]; write [label, message, "reason"] with the label NA, PRESENT or LACKING',
    ],
    [
      both(failed('NA')),
      'r1.labels.ask_first is "NA"; write [label, message, "reason"] with the label NA, PRESENT or LACKING',
    ],
    [
      both(failed(['PRESENT', 1, ' '])),
      'r1.labels.ask_first has no reason; write ["PRESENT", message, "what is to be seen there"]',
    ],
    [
      both(failed(['LACKING', null, 'x'])),
      'r1.labels.ask_first hangs on the message null; give the number of a message of r1',
    ],
    [
      both(failed(['LACKING', '', 'x'])),
      'r1.labels.ask_first hangs on the message ""; give the number of a message of r1',
    ],
    [
      both(failed(['LACKING', 'r2.1', 'x'])),
      'r1.labels.ask_first hangs on the message "r2.1"; give the number of a message of r1',
    ],
    [both(failed(['LACKING', 5, 'x'])), 'r1.labels.ask_first: r1 has no message 5; its messages are 1 to 4'],
    [
      both(failed(['LACKING', 0, 'x'])),
      'r1.labels.ask_first: r1.0 is the policy, which is no part of the trajectory; its messages are 1 to 4',
    ],
    [
      began(null),
      'r1.failure is null, but r1 FAILED; write {"of": "agent", "message": the number of the message in which the failure begins, "reason": "..."}',
    ],
    [
      both({ labels: labeled().labels }),
      'r1.failure is missing, but r1 FAILED; write {"of": "agent", "message": the number of the message in which the failure begins, "reason": "..."}',
    ],
    [both(failed(), failed()), 'r2.failure: r2 PASSED, so there is no failure; write null and label it'],
    [began({ ...begins, of: 'policy' }), 'r1.failure.of is "policy"; write "agent", "environment" or "user"'],
    [began({ of: 'agent', reason: 'x' }), 'r1.failure hangs on the message null; give the number of a message of r1'],
    [began({ ...begins, message: 5 }), 'r1.failure: r1 has no message 5; its messages are 1 to 4'],
    [
      began({ ...begins, message: 0 }),
      'r1.failure: r1.0 is the policy, which is no part of the trajectory; its messages are 1 to 4',
    ],
    [began({ ...begins, reason: ' ' }), 'r1.failure has no reason; say in one line why the failure begins there'],
    [
      began(blamed),
      'r1 labels ask_first beside a failure that is not the agent\'s, which says nothing of the agent: write "labels": {}, or a failure of "agent"',
    ],
    [
      both({ failure: { ...blamed, message: 9 }, labels: {} }),
      'r1.failure: r1 has no message 9; its messages are 1 to 4',
    ],
  ])('%j: %s', (answer, defect) => {
    expect(read(answer)).toEqual({ defects: [defect] });
  });

  it('is nothing in the example of the prompt', () => {
    const values = { policy: '', tools: '', trajectories: '', capabilities: '', ids: '' };
    const text = openPrompts().render('label', values).at(-1)?.content ?? '';
    const names = ['convert_units_before_comparing', 'report_measurement_uncertainty'];
    const long = new Map(['r1', 'r2', 'r3'].map((id) => [id, trajectory({ task: id, passed: id === 'r3', turns: 8 })]));
    const read = readLabels({ text, shown: long, names });
    expect('value' in read && read.value.get('r1')?.labels.get(names[0] as string)).toEqual({
      label: 'LACKING',
      reason: 'takes the larger number though the units differ',
      message: 7,
    });
    const failures = 'value' in read && [...read.value.values()].map(({ failure }) => failure);
    expect(failures).toMatchObject([{ of: 'agent', message: 7 }, { of: 'user', message: 5 }, undefined]);
  });
});
