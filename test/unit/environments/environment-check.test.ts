/** `campaign env check`: honest environments pass; of those with one violation it is the violation that is found. */
import { join } from 'node:path';
import type { Environment } from '../../../src/domain/environment';
import { checkAloud } from '../../../src/cli/environment-check';
import { checkEnvironment, type Finding } from '../../../src/environments/conformance';
import { exampleOf, jsonSchema, valueProblem } from '../../../src/environments/json-schema';
import { openProcessEnvironment } from '../../../src/environments/process';
import { countingEnvironment, type CountingOptions } from '../../support/counting-environment';

const ledger = (violation: string) => async () =>
  openProcessEnvironment({
    command: [process.execPath, join(__dirname, '../../support/ledger.mjs'), violation],
    // What is not silent may take long to start on a busy machine.
    silenceMs: violation === 'silent' ? 3000 : 60_000,
  });

async function check(open: () => Promise<Environment>): Promise<{ findings: Finding[]; notes: Finding[] }> {
  const notes: Finding[] = [];
  const environment = await open();
  const findings = await checkEnvironment(environment, { again: open, onNote: (note) => notes.push(note) });
  await environment.close();
  return { findings, notes };
}
/** Of an environment in process, without a second one. */
const findingsOf = (options: CountingOptions, changes: Partial<Environment> = {}) =>
  checkEnvironment({ ...countingEnvironment(options), ...changes });
const problemsOf = async (method: string, changes: Partial<Environment>) =>
  (await findingsOf({}, changes)).filter(({ check }) => check === method).map(({ problem }) => problem);

test.each(['none', 'JSON records', 'text records'])(
  'an honest environment passes, with nothing to note: %s',
  async (kind) => {
    expect(await check(ledger(kind))).toEqual({ findings: [], notes: [] });
  },
);

test.each([
  ['counts as 1', 0.7 + 0.2 + 0.1],
  ['counts as 1', 1.0000000000000002],
  ['is no success', 0.9999],
])('a reward that is nearly 1 is noted: it %s', async (how, reward) => {
  const notes: string[] = [];
  const onNote = ({ check, problem }: Finding) => void notes.push(`${check}: ${problem}`);
  await checkEnvironment(countingEnvironment({ reward: () => reward }), { onNote });
  expect(notes.filter((note) => note.startsWith(`evaluate: reward is ${reward}`) && note.includes(how))).toHaveLength(
    1,
  );
});

const MESSAGES = /messages\.\d\.toolCallId|messages: call/;
const LOOK_UP = 'step: a valid call of look_up';
const PROCESS = /differs in a second process/;

/** Violation, method, what is said of which field. */
const table: [violation: string, method: string, problem: RegExp][] = [
  ['malformed required', 'describe', /tools\.1\.parameters\.required: must be a list of names/],
  ['required is not described', 'describe', /tools\.1\.parameters\.required names sum/],
  ['tool listed twice', 'describe', /tools holds pay twice/],
  ['empty policy', 'describe', /policy is empty/],
  ['empty test split', 'tasks', /the test split is empty/],
  ['tasks differ between calls', 'tasks', /tasks\(train\) differs when asked twice/],
  ['tasks differ between processes', 'tasks', /tasks\(train\) differs in a second process: 6\.id/],
  ['unknown task is begun', 'reset', /unknown task\.id is begun/],
  ['start depends on the clock', 'reset', /begins differently when reset twice with seed 1: messages\.1\.content/],
  ['start depends on the process', 'reset', /of task train-0 differs in a second process: messages\.1\.content/],
  ['episode id counts what is open', 'reset', /episode: "1" is the id of an episode that is still open/],
  ['maxSteps out of range', 'reset', /maxSteps: Too small/],
  ['silent', 'reset', /has not answered reset for 3 s/],
  ['shared state', 'step', /in turn, is answered differently: results\.0\.messages\.0\.content: "10", then "9"/],
  ['state shared without a word', 'step', /task train-0, .*(breakdown|reward|results)/],
  [
    'state shared while open',
    'step',
    /task train-0, (open while another episode wrote|played while another episode is open)/,
  ],
  ['answers the first call only', 'step: 3 calls in one message', MESSAGES],
  ['answers a call that nobody made', 'step', MESSAGES],
  ['crashes on a missing field', 'step', /KeyError: account/],
  ['described tool is unknown', 'step: a valid call of pay', /messages\.0\.content is "error : unknown tool pay"/],
  ['dies in a step', 'step', /ended with exit code 3/],
  ['JSON record lacks a field', LOOK_UP, /is "\{"account":"a0"\}", .*Schema says: money: is required and missing/],
  ['JSON record holds a text', LOOK_UP, /outputSchema says: money: .*expected (number|int), received string/],
  [
    'text record lacks a field',
    LOOK_UP,
    /is "a0 plenty", .*Schema says: record 1: money: no value of \{"type":"integer",/,
  ],
  ['observation is no record', LOOK_UP, /is "there are 10", .* outputSchema says: record 1: account: no value of/],
  ['write never succeeds', 'evaluate', /a reference action was answered "error : the ledger is closed"/],
  ['reference is missing', 'evaluate', /reference is missing for task train-0/],
  ['reference names no tool', 'evaluate', /reference\.actions\.0\.name of task train-0 is "transfer", no tool/],
  ['reference does not fit the schema', 'evaluate', /reference\.actions\.0\.arguments\.amount: .*expected number/],
  ['reference names no argument', 'evaluate', /reference\.actions\.0\.arguments\.purpose: is not among the properties/],
  ['reference does not score', 'evaluate', /reward of task train-0 is 0 for its own reference\.actions/],
  [
    'reference fails in the test split',
    'evaluate',
    /of task test-0 is 0 for its own reference\.actions: .*a9 is unknown/,
  ],
  ['reference depends on the process', 'evaluate', PROCESS],
  ['reward out of range', 'evaluate', /reward: Too big/],
  ['reward for doing nothing', 'evaluate', /an agent that does nothing has reward 1 on 7 of 7 sampled tasks/],
  ['reward is the number said', 'evaluate', /reward is the number that the agent says \("0\.3721"\)/],
  ['reward for a claim', 'evaluate', /reward is 1 on 3 sampled tasks for an agent that only says "success"/],
  ['reward depends on the process', 'evaluate', /train-0, left alone, differs in a second process: reward/],
];

test.each(table)(
  'found: %s',
  async (violation, method, problem) => {
    const { findings } = await check(ledger(violation));
    const found = findings.find((finding) => finding.check.startsWith(method) && problem.test(finding.problem));
    expect({ findings, found: found !== undefined }).toMatchObject({ found: true });
    for (const { fix } of findings) expect(fix).not.toBe('');
    expect(findings.length).toBeLessThan(5);
  },
  40_000,
);

test('noted: errors that name no field, a write that nobody saw succeed, an idle agent that is right in some tasks', async () => {
  const { findings, notes } = await check(ledger('errors without a field'));
  expect(findings).toEqual([]);
  expect(notes).toMatchObject([{ check: 'step', problem: expect.stringContaining('pay without "account"') }]);
  const open = ledger('no reference and a write that never succeeds');
  expect((await check(open)).notes.map(({ problem }) => problem).join()).toContain(
    'no call of a tool that writes was seen',
  );
  const idle = await check(async () => countingEnvironment({ reward: (_count, wanted) => Number(wanted === 1) }));
  expect(idle.notes.map(({ problem }) => problem).join()).toContain(
    'an agent that does nothing has reward 1 on 1 of 2 sampled tasks',
  );
}, 60_000);

test('aloud: which check, the slowest requests, and what the parts of the method lack', async () => {
  const lines: string[] = [];
  const say = (line: string) => void lines.push(line);
  expect(await checkAloud({ open: ledger('no reference'), isUserPlayed: () => false, say })).toEqual([]);
  expect(lines.join('\n')).toMatch(
    /^ +\d+\.\d s {2}describe\n[^]* s {2}starts\n[^]*slowest: describe [\d.]+ s, tasks [\d.]+ s, reset [\d.]+ s, evaluate [\d.]+ s, step/,
  );
  for (const [part, lacks] of [
    ['analyst rules', 'hasReference is false'],
    ['synthesizer generators', 'outputSchema'],
  ])
    expect(lines.join('\n')).toMatch(
      new RegExp(`note: it keeps the contract, but ${part} can't work on it: .*${lacks}`),
    );
});

test('aloud: what takes longer than a campaign waits', async () => {
  const command = [
    '/bin/sh',
    '-c',
    `sleep 1.5; exec ${process.execPath} ${join(__dirname, '../../support/ledger.mjs')} none`,
  ];
  const told = async (silenceSeconds: number) => {
    const lines: string[] = [];
    const say = (line: string) => void lines.push(line);
    const open = async () => openProcessEnvironment({ command });
    expect(await checkAloud({ open, isUserPlayed: () => false, silenceSeconds, say })).toEqual([]);
    return lines.filter((line) => line.includes('silenceSeconds'));
  };
  expect(await told(1)).toEqual([
    expect.stringMatching(
      /^note: describe: took \d\.\d s, and a campaign kills the process after 1 s without an answer; set target\.silenceSeconds to \d+ /,
    ),
  ]);
  expect(await told(120)).toEqual([]);
}, 30_000);

test('a program that is not there, and one that ends at once', async () => {
  expect((await check(async () => openProcessEnvironment({ command: ['no-such-program'] }))).findings).toEqual([
    {
      check: 'describe',
      problem: expect.stringContaining("can't be started"),
      fix: 'check the command and its folder',
    },
  ]);
  const command = [process.execPath, '-e', 'console.error("no data"); process.exit(1)'];
  expect((await check(async () => openProcessEnvironment({ command }))).findings).toMatchObject([
    { check: 'describe', problem: 'ended with exit code 1', fix: expect.stringContaining('stderr:\nno data') },
  ]);
});

describe('of an environment in process', () => {
  test('what a sloppy one does', async () => {
    // It has no system message and begins unknown tasks.
    const always = ['messages do not begin with the system message', 'an unknown task.id is begun as if it were one'];
    expect((await findingsOf({})).map(({ problem }) => problem)).toEqual(always);
    const checks = async (options: CountingOptions) => (await findingsOf(options)).map(({ check }) => check);
    expect(await checks({ reward: () => 2 })).toEqual(['reset', 'reset', 'evaluate']);
    const failing = { beforeStep: () => Promise.reject(new Error('KeyError')) };
    expect(await checks(failing)).toEqual(['reset', 'reset', 'step (episodes in turn)']);
  });

  test('answers in another shape than the protocol has', async () => {
    const described = await countingEnvironment().describe();
    const describing = (changes: object) => ({ describe: async () => ({ ...described, ...changes }) });
    expect(await problemsOf('describe', describing({ maxSteps: 0 }))).toEqual([expect.stringMatching(/^maxSteps: /)]);
    expect(await problemsOf('tasks', { tasks: async () => [{ id: 1 }] as never })).toEqual([
      expect.stringMatching(/^tasks\.0\.id: /),
    ]);
    // A policy rule of a known kind that is no such rule; any other kind may be anything.
    expect(await problemsOf('describe', describing({ rules: [{ kind: 'tell' }] }))).toEqual([
      expect.stringMatching(/^rules\.0 of .*question: /),
    ]);
    expect(await problemsOf('describe', describing({ rules: [{ kind: 'house rule' }] }))).toEqual([]);
  });

  test('splits that overlap or are mixed', async () => {
    expect(await problemsOf('tasks', { tasks: async (split) => [{ id: 'n-1', split }] })).toEqual([
      'task n-1 is in train and again in test',
    ]);
    expect(await problemsOf('tasks', { tasks: async (split) => [{ id: `n-${split}`, split: 'train' }] })).toEqual([
      'tasks(test) lists n-test of split train',
    ]);
  });
});

describe('JSON schemas', () => {
  test.each([
    [{ type: 'object', properties: { a: 'string' } }, 'properties.a'],
    [{ type: 'object', properties: { a: { type: 'money' } } }, 'properties.a.type'],
    [{ type: 'object', properties: { a: { type: 'string', pattern: '(' } } }, 'properties.a.pattern'],
    [{ anyOf: [] }, 'anyOf'],
    [{ enum: [] }, 'enum'],
    [{ type: 'array', items: { minimum: '1' } }, 'items.minimum'],
    [[], ''],
  ])('%j is none', (schema, path) => expect(jsonSchema.safeParse(schema).error?.issues[0]?.path.join('.')).toBe(path));

  test.each([
    { type: 'object', properties: { a: { type: ['string', 'null'] } }, additionalProperties: false },
    { type: 'object', properties: { a: { $ref: '#/$defs/x' } }, $defs: { x: { type: 'integer' } } },
    { type: 'object', properties: { a: { anyOf: [{ type: 'number' }, { type: 'null' }] } }, required: ['a'] },
    { type: 'object', properties: { a: { type: 'string', pattern: '^u[0-9]{2}$' } }, required: ['a'] },
    { type: 'object', properties: { a: { type: 'integer', minimum: 10, multipleOf: 4 } }, required: ['a'] },
    { type: 'object' },
  ])('%j is one, and has a value that fits', (schema) => {
    expect(jsonSchema.safeParse(schema).success).toBe(true);
    expect(valueProblem(schema as never, exampleOf(schema as never))).toBeUndefined();
  });

  test('arguments that do not fit', () => {
    const schema = { type: 'object', properties: { n: { type: 'integer', maximum: 3 } }, required: ['n'] };
    expect(valueProblem(schema, {})).toBe('n: is required and missing');
    expect(valueProblem(schema, { n: 4 })).toMatch(/^n: /);
    expect(valueProblem(schema, { n: 1, m: 1 })).toBe('m: is not among the properties');
  });
});
