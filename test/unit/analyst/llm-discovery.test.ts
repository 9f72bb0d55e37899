/** Discovery by a language model: what is asked, what is taken, what is sent back. */
import { readDiscovery, readMerged } from '../../../src/analyst/llm/answers';
import { renderPrompt } from '../../../src/llm/answer';
import { analystAsking, description, json, trajectory } from '../../support/analyst-llm';
import { failing } from '../../support/failing';

const step = (rollout: string, message = 2) => ({ rollout, message, says: `what ${rollout} shows` });
const capability = (fields: object = {}) => ({
  name: 'ask_before_acting',
  definition: 'An act cannot be taken back. The agent asks first.',
  lacking: [step('r1')],
  shown: [step('r2')],
  ...fields,
});
const found = (...capabilities: object[]) => ({ capabilities, faults: [] });

/** r1 failed and r2 passed, at one task; r3 failed, r4 passed. */
const rollouts = [
  trajectory({ task: 'a', attempt: 0, passed: false, words: 'wants seat 4b' }),
  trajectory({ task: 'a', attempt: 1, passed: true }),
  trajectory({ task: 'b', passed: false }),
  trajectory({ task: 'c', passed: true }),
];
const quotable = new Set(rollouts.map(({ key }) => key));
const rule = { maxCandidates: 2 };

type Input = Parameters<ReturnType<typeof analystAsking>['analyst']['discover']>[0];
/** What is found with these answers, and what was asked for it. */
async function discover(
  answer: Parameters<typeof analystAsking>[0],
  more: Partial<Input> = {},
  options: Parameters<typeof analystAsking>[1] = {},
) {
  const { analyst, work, ...asked } = analystAsking(answer, options);
  return { ...(await analyst.discover({ ...work, rollouts, quotable, rule, ...more })), ...asked };
}

describe('one chunk', () => {
  it('is asked once: policy, tools and trajectories, then the question', async () => {
    const { questions, askings, told, ...discovery } = await discover(() =>
      found(capability({ shown: [step('r2'), step('r4', 1)] })),
    );
    expect(discovery).toEqual({
      candidates: [
        {
          name: 'ask_before_acting',
          definition: 'An act cannot be taken back. The agent asks first.',
          examples: ['key-a-0', 'key-a-1', 'key-c-0'],
          citations: [
            // What people read is named by what they know; the model's own words are for prompts.
            { rollout: 'key-a-0', message: 2, says: 'what task a, attempt 0 shows', verbatim: 'what r1 shows' },
            { rollout: 'key-a-1', message: 2, says: 'what task a, attempt 1 shows', verbatim: 'what r2 shows' },
            { rollout: 'key-c-0', message: 1, says: 'what task c, attempt 0 shows', verbatim: 'what r4 shows' },
          ],
        },
      ],
      faults: [],
    });
    const places = [
      ...['Ask before you book.', 'find_flight (changes nothing): finds one', '"day"', '[r1] task a', '[r4]'],
      ...['Failed: r1, r3.', 'Passed: r2, r4.', 'At most 2 capabilities'],
    ];
    const order = places.map((place) => questions[0]!.messages.at(-1)!.content.indexOf(place));
    expect(order).toEqual([...order].sort((a, b) => a - b));
    expect(order).not.toContain(-1);
    expect(askings.map((asking) => asking.step)).toEqual(['discovery']);
    expect(told).toEqual(['1/1']);
  });

  it('reports faults, with the rollouts that show them', async () => {
    const verbatim = 'unlike r4.2, r9, tr1';
    const steps = [{ ...step('r3', 1), says: verbatim }];
    const answer = { capabilities: [], faults: [{ of: 'user', what: 'Ends too early, as in r3.1.', steps }] };
    const { candidates, faults } = await discover(() => answer);
    expect(candidates).toEqual([]);
    // Nobody was shown as r9.
    const says = 'unlike message 2 of task c, attempt 0, r9, tr1';
    const citations = [{ rollout: 'key-b-0', message: 1, says, verbatim }];
    expect(faults).toEqual([{ of: 'user', what: 'Ends too early, as in message 1 of task b, attempt 0.', citations }]);
  });

  it.each([
    ['failures', false],
    ['successes', true],
  ])('asks nothing where there are only %s', async (_, passed) => {
    const same = rollouts.filter(({ reward }) => (reward === 1) === passed);
    const { candidates, faults, questions } = await discover(() => found(capability()), { rollouts: same });
    expect([candidates, faults, questions]).toEqual([[], [], []]);
  });

  it('sends back what is wrong, and takes the mended answer, or fails with the last defects', async () => {
    const wrong = found(capability({ lacking: [step('r9')] }));
    const { candidates, questions } = await discover((asked) =>
      asked.includes('there is no trajectory "r9"') ? found(capability()) : wrong,
    );
    expect(candidates.map(({ name }) => name)).toEqual(['ask_before_acting']);
    expect(questions).toHaveLength(2);
    const refusing = analystAsking(() => 'I would rather not.');
    const refused = refusing.analyst.discover({ ...refusing.work, rollouts, quotable, rule });
    await expect(refused).rejects.toMatchObject(failing('AnswerInvalid', 'no JSON'));
    expect(refusing.questions).toHaveLength(2);
  });
});

describe('what is wrong with an answer', () => {
  const shown = new Map(rollouts.map((rollout, n) => [`r${n + 1}`, rollout]));
  const defectsOf = (answer: unknown, ids = [...shown.keys()]) => {
    const read = readDiscovery({
      text: typeof answer === 'string' ? answer : json(answer),
      shown: new Map([...shown].filter(([id]) => ids.includes(id))),
      shownText: { trajectories: 'the user wants seat 4b', tools: ['find_flight', 'think'] },
      maxCandidates: 2,
    });
    return 'defects' in read ? read.defects : [];
  };

  it('is nothing', () => {
    expect(defectsOf(found(capability()))).toEqual([]);
    expect(defectsOf(found())).toEqual([]);
    expect(defectsOf(found(capability({ shown: [] })), ['r1', 'r3'])).toEqual([]);
    const general = 'One of 2 offers fits, in 24 h. The agent can think, and finds a flight in the 4th row.';
    expect(defectsOf(found(capability({ definition: general })))).toEqual([]);
  });

  const named = (name: string) => found(capability({ name }));
  const defined = (definition: string) => found(capability({ definition }));
  const lacking = (...steps: object[]) => found(capability({ lacking: steps }));
  const shows = (...steps: object[]) => found(capability({ shown: steps }));
  const blames = (of: string, message: number) => ({
    capabilities: [],
    faults: [{ of, what: 'x', steps: [step('r1', message)] }],
  });
  it.each<[unknown, field: string]>([
    ['none', ''],
    [[], 'the answer'],
    [named('Ask2'), 'capabilities.0.name'],
    [found(capability(), capability()), 'capabilities.1.name'],
    [lacking(), 'capabilities.0.lacking'],
    [shows(), 'capabilities.0.shown'],
    [lacking(step('r2')), 'capabilities.0.lacking.0'],
    [shows(step('r1')), 'capabilities.0.shown.0'],
    [lacking(step('r1', 5)), 'capabilities.0.lacking.0'],
    [blames('agent', 2), 'faults.0.of'],
    [defined('Orders above 500 need a yes.'), 'capabilities.0.definition'],
    [defined('Takes seat 4b.'), 'capabilities.0.definition'],
    [defined('Calls find_flight first.'), 'capabilities.0.definition'],
    [defined('word '.repeat(200).trim()), 'capabilities.0.definition'],
  ])('%j: %s', (answer, field) => {
    const defects = defectsOf(answer);
    expect(defects).toHaveLength(1);
    expect(defects[0]).toMatch(new RegExp(`^${field}`));
  });
});

describe('several chunks', () => {
  /** Two trajectories in a chunk: r1 and r3, r2 and r4, in an order that the chunks decide. */
  const pairs = ['a', 'b', 'c'].flatMap((task) =>
    [0, 1].map((attempt) => trajectory({ task, attempt, passed: attempt > 0 })),
  );
  const chunked = { chunkTokens: 80 };
  const shownIn = (asked: string) => /Failed: (r\d+).\nPassed: (r\d+)./.exec(asked)?.slice(1) ?? [];
  const proposalFor = (asked: string) => {
    const [failed = '', passed = ''] = shownIn(asked);
    const name = { r1: 'ask_before_acting', r3: 'ask_before_writing', r5: 'read_all_results' }[failed];
    return found(capability({ name, lacking: [step(failed)], shown: [step(passed)] }));
  };
  const all = { quotable: new Set(pairs.map(({ key }) => key)), rollouts: pairs };

  it('are asked each, and their proposals merged with the citations of both', async () => {
    const merged = { name: 'ask_before_acting', definition: 'An act is final. The agent asks.' };
    const { candidates, questions, told } = await discover(
      (asked) => {
        if (!asked.includes('<proposals>')) return proposalFor(asked);
        const order = [...asked.matchAll(/\[(\d)\] (\w+): /g)].map(([, n, name]) => [name, Number(n)]);
        const number = Object.fromEntries(order) as Record<string, number>;
        return { capabilities: [{ ...merged, merges: [number.ask_before_acting, number.ask_before_writing] }] };
      },
      all,
      chunked,
    );
    const keys = ['key-a-0', 'key-b-0', 'key-a-1', 'key-b-1'];
    const citations = keys.map((rollout): unknown => expect.objectContaining({ rollout, message: 2 }));
    expect(candidates).toEqual([{ ...merged, examples: keys, citations }]);
    expect(questions).toHaveLength(4);
    const merge = questions.at(-1)?.messages.at(-1)?.content;
    expect(merge).toContain('lacking (1 attempts):\n- r1.2: what r1 shows\nshown (1 attempts):\n- r2.2: what r2 shows');
    expect(told.at(-1)).toBe('1/1');
  });
});

describe('what is wrong with a merge', () => {
  const proposals = [1, 2].map((n) => capability({ name: n === 1 ? 'do_this' : 'do_that', lacking: [step(`r${n}`)] }));
  const merged = (...capabilities: object[]) => ({
    capabilities: capabilities.map((one) => ({ name: 'do_this', definition: 'It arises. The agent does it.', ...one })),
  });
  const shownText = { trajectories: '', tools: [] };
  const read = (answer: unknown) =>
    readMerged({ text: json(answer), proposals: proposals as never, shownText, maxCandidates: 1 });

  it.each<[unknown, field: string]>([
    [merged({ merges: [1, 3] }), 'capabilities.0.merges'],
    [merged({ merges: [1] }, { name: 'do_that', merges: [2] }), 'capabilities'],
    [merged({ merges: [1], definition: 'Room 101.' }), 'capabilities.0.definition'],
  ])('%j: %s', (answer, field) => {
    expect(read(answer)).toEqual({ defects: [expect.stringMatching(new RegExp(`^${field}`))] });
  });
});

describe('the analyst', () => {
  it('says before anything is spent that a target has no room', () => {
    const { analyst } = analystAsking(() => '');
    const all = { maxCandidates: 10 } as Parameters<NonNullable<typeof analyst.unsuited>>[1];
    expect(analyst.unsuited?.(description, all)).toBeUndefined();
    const wide = { ...description, policy: 'word '.repeat(100_000) };
    const problem = analyst.unsuited?.(wide, all) ?? '';
    expect(problem).toMatch(/^analyst.contextTokens/);
    const contextTokens = Number(/set contextTokens to (\d+)/.exec(problem)?.[1]);
    expect(analystAsking(() => '', { contextTokens }).analyst.unsuited?.(wide, all)).toBeUndefined();
  });

  it('gives an example that its own checks accept', () => {
    const values = { policy: '', tools: '', trajectories: '', failed: '', passed: '', maxCandidates: '10' };
    const [text] = renderPrompt('discover', values).slice(-1);
    const shown = [1, 2, 5, 9].map((n) => [`r${n}`, trajectory({ task: `${n}`, passed: n === 1, turns: 12 })] as const);
    const shownText = { trajectories: '', tools: [] };
    const read = readDiscovery({ text: text?.content ?? '', shown: new Map(shown), shownText, maxCandidates: 10 });
    expect(read).toMatchObject({
      value: { capabilities: [{ name: 'convert_units_before_comparing' }], faults: [{ of: 'user' }] },
    });
  });
});
