/** Labels by a language model: what is asked, what is taken, what is sent back. */
import { readFileSync } from 'node:fs';
import { readLabels } from '../../../src/analyst/llm/answers';
import { partitionProblem } from '../../../src/domain/selection';
import { renderPrompt } from '../../../src/llm/answer';
import type { Question } from '../../../src/llm/model';
import { analystAsking, json, trajectory } from '../../support/analyst-llm';

const names = ['ask_first', 'read_results'];
const candidates = names.map((name) => ({ name, definition: `It arises. ${name}.`, examples: [] }));
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

const idsIn = ({ messages }: Question) =>
  (/Label each of these trajectories: (.*)\.\n/.exec(messages[1]?.content ?? '')?.[1] ?? '').split(', ');
const failedIn = ({ messages }: Question, id: string) =>
  new RegExp(`^\\[${id}\\] .*: FAILED `, 'm').test(messages[1]?.content ?? '');
/** Labels by the outcomes in the question; `changed`: of some, something else. */
const answering = (
  options: Parameters<typeof analystAsking>[1] = {},
  changed: (id: string, usual: object) => object = (_, usual) => usual,
) =>
  analystAsking(
    (_, question) =>
      Object.fromEntries(idsIn(question).map((id) => [id, changed(id, failedIn(question, id) ? failed() : labeled())])),
    options,
  );

/** A pass by these answers, and what was asked for it. */
async function labelOf(
  { analyst, work, ...asked }: ReturnType<typeof analystAsking>,
  more: Partial<Parameters<typeof analyst.label>[0]> = {},
) {
  return { ...asked, pass: await analyst.label({ ...work, rollouts, candidates, pass: 0, ...more }) };
}

describe('a pass', () => {
  it('labels every trajectory for every candidate, with reasons, and says where every failure begins', async () => {
    const asking = analystAsking(() => ({
      r1: failed(['LACKING', 2, 'books at once']),
      r2: labeled(),
      r3: { failure: blamed, labels: {} },
      r4: labeled(['LACKING', 3, 'books at once'], ['PRESENT', 4, 'reads it']),
    }));
    const { pass, questions, askings, told } = await labelOf(asking, { pass: 3 });
    expect(partitionProblem(pass)).toBeUndefined();
    const none = {
      ...{ lacking_failed: [], present_failed: [], na_failed: [] },
      ...{ lacking_passed: [], present_passed: [], na_passed: [] },
    };
    const [a0, a1, b0, c0] = ['key-a-0', 'key-a-1', 'key-b-0', 'key-c-0'] as const;
    const nothing = { reason: 'nothing to read' };
    expect(pass).toEqual({
      attempt: 3,
      totals: { total_failed: 2, total_passed: 2 },
      labels: {
        ask_first: { ...none, lacking_failed: [a0], na_failed: [b0], lacking_passed: [c0], present_passed: [a1] },
        read_results: { ...none, na_failed: [a0, b0], present_passed: [c0], na_passed: [a1] },
      },
      reasons: {
        ask_first: {
          [a0]: { reason: 'books at once', message: 2 },
          [a1]: { reason: 'asks', message: 2 },
          [c0]: { reason: 'books at once', message: 3 },
        },
        read_results: { [a0]: nothing, [a1]: nothing, [c0]: { reason: 'reads it', message: 4 } },
      },
      failures: { [a0]: begins, [b0]: blamed },
    });
    expect(questions[0]?.messages.at(-1)?.content).toContain('- ask_first: It arises. ask_first.\n- read_results: ');
    expect(askings.map(({ step }) => step)).toEqual(['labels']);
    expect(told).toEqual(['1/1']);
  });

  it('asks in chunks what all passes ask, byte for byte; only the seed differs', async () => {
    const questionsOf = async (n: number, given = rollouts) => {
      const { pass, questions } = await labelOf(answering({ labelsPerChunk: 3 }), { rollouts: given, pass: n });
      expect(pass.totals).toEqual({ total_failed: 2, total_passed: 2 });
      return questions;
    };
    const [first, second] = [await questionsOf(0), await questionsOf(1, [...rollouts].reverse())];
    expect(first.map((question) => idsIn(question).join())).toEqual(['r1,r2,r4', 'r3']);
    expect(second.map(({ messages }) => messages)).toEqual(first.map(({ messages }) => messages));
    expect(new Set([...first, ...second].map(({ seed }) => seed)).size).toBe(2);
  });

  it('shows what discovery showed, in the same bytes up to the question', () => {
    const before = (name: string) => readFileSync(`prompts/${name}.md`, 'utf8').split('# Your task')[0];
    expect(before('label')).toBe(before('discover'));
  });

  it('names trajectories by what people know: `r1.2` is known to the prompt alone', async () => {
    const reason = 'r1.2 books as r2.3 does not, and r4 neither';
    const naming = { ...failed(['LACKING', 2, reason]), failure: { ...begins, reason } };
    const { pass } = await labelOf(answering({}, (id, usual) => (id === 'r1' ? naming : usual)));
    const told = 'message 2 books as message 3 of task a, attempt 1 does not, and task c, attempt 0 neither';
    expect(pass.reasons?.['ask_first']?.['key-a-0']).toEqual({ reason: told, message: 2 });
    expect(pass.failures?.['key-a-0']).toEqual({ ...begins, reason: told });
  });
});

describe('an answer', () => {
  /** r1 failed, r2 passed. */
  const shown = new Map(['r1', 'r2'].map((id, n) => [id, rollouts[n]!]));
  const read = (answer: unknown) =>
    readLabels({ text: typeof answer === 'string' ? answer : json(answer), shown, names });
  const both = (first: unknown, second: unknown = labeled()) => ({ r1: first, r2: second });
  const began = (failure: unknown) => both({ ...labeled(), failure });
  const ofFirst = (answer: unknown) => {
    const given = read(answer);
    return 'value' in given ? given.value.get('r1') : given.defects;
  };
  it('may say where a failure begins as it stands in the trajectory, and label NA what is not the agent’s', () => {
    const failure = { of: 'agent', message: 4, reason: 'why' };
    expect(ofFirst(began({ ...failure, message: 'r1.4', reason: ' why ' }))).toMatchObject({ failure });
    const naming = { failure: blamed, labels: { ask_first: ['NA', null, 'x'], read_results: 'NA' } };
    const passed = { labels: labeled().labels };
    expect(ofFirst(both(naming, passed))).toEqual({ failure: blamed, labels: new Map() });
  });

  it.each<[unknown, field: string]>([
    ['none', ''],
    [[1], 'the answer'],
    [{ r1: failed() }, 'r2'],
    [{ ...both(failed()), r3: labeled() }, 'the answer'],
    [both('NA'), 'r1: '],
    [both({ failure: begins }), 'r1.labels'],
    [both({ failure: begins, labels: { ...labeled().labels, ask: 1 } }), 'r1.labels'],
    [both(failed(['ABSENT', 1, 'x'])), 'r1.labels.ask_first'],
    [both(failed(['LACKING', null, 'x'])), 'r1.labels.ask_first'],
    [both(failed(['LACKING', 'r2.1', 'x'])), 'r1.labels.ask_first'],
    [both(failed(['LACKING', 5, 'x'])), 'r1.labels.ask_first'],
    [began(null), 'r1.failure'],
    [both(failed(), failed()), 'r2.failure'],
    [began({ ...begins, of: 'policy' }), 'r1.failure.of'],
    [began({ ...begins, message: 5 }), 'r1.failure.message'],
    [began(blamed), 'r1.labels'],
    [both({ failure: { ...blamed, message: 9 }, labels: {} }), 'r1.failure.message'],
  ])('%j is sent back: %s', (answer, field) => {
    expect(read(answer)).toEqual({ defects: [expect.stringMatching(new RegExp(`^${field}`))] });
  });

  it('is what the example of the prompt is', () => {
    const values = { policy: '', tools: '', trajectories: '', capabilities: '', ids: '' };
    const text = renderPrompt('label', values).at(-1)?.content ?? '';
    const [units = '', uncertainty = ''] = ['convert_units_before_comparing', 'report_measurement_uncertainty'];
    const long = new Map(['r1', 'r2', 'r3'].map((id) => [id, trajectory({ task: id, passed: id === 'r3', turns: 8 })]));
    const given = readLabels({ text, shown: long, names: [units, uncertainty] });
    const all = 'value' in given ? [...given.value.values()] : [];
    expect(all[0]?.labels.get(units)).toMatchObject({ label: 'LACKING', why: { message: 7 } });
    expect(all.map(({ failure }) => failure)).toMatchObject([
      { of: 'agent', message: 7 },
      { of: 'user', message: 5 },
      undefined,
    ]);
  });
});
