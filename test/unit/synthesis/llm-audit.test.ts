/** Modules as a language model is to write them: JSON observations, conversations of several turns, twins. Fair ones pass, lax ones are found. */
import { readdirSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { attackLine, attacksIn, type Attack } from '../../../src/sandbox/attacks';
import { selfTest } from '../../../src/sandbox/self-test';
import { readFixtureRollouts } from '../../support/fixture-rollouts';
import { recordedModule } from '../../support/recorded-replies';
import { sample } from '../../support/sample';

const examples = resolve(__dirname, '../../..', 'prompts', 'examples');
const read = (name: string): string => readFileSync(join(examples, name), 'utf8');
const writing = readFileSync(resolve(__dirname, '../..', 'fixtures', 'synthesis', 'writing-by-hand.js'), 'utf8');
const { tools } = readFixtureRollouts('tau2-retail/rollouts').description;
const targetTools = Object.fromEntries(tools.map((tool) => [tool.name, tool]));
const retail = `const targetTools = ${JSON.stringify(targetTools)};\n${recordedModule()}`;
const findingsOf = async (source: string): Promise<string> => (await selfTest({ source })).findings.join('\n');
const changed = (source: string, ...changes: [string, string][]): string =>
  changes.reduce((text, [from, to]) => {
    expect(text).toContain(from);
    return text.replaceAll(from, to);
  }, source);

const fair = [
  ['one without tools', writing],
  ...readdirSync(examples).map((name) => [`the example ${name}`, read(name)]),
];
it.each(sample(fair, 2))('%s passes', async (what, source) => {
  expect(await selfTest({ source: source! })).toMatchObject({ passed: true, findings: [] });
  // Examples are short enough to be read.
  if (what!.startsWith('the example')) expect(source!.split('\n').length).toBeLessThan(180);
});

test('a module without tools that pays for any text of some length is found', async () => {
  const right = 'words.includes(word) && words.includes(topic) && !copied && new Set(words).size * 2 > words.length';
  expect(await findingsOf(changed(writing, [right, 'true']))).toMatch(/always saying "[^]*succeeds on/);
});

describe('what is found where observations are JSON', () => {
  const lax: [string, string, RegExp][] = [
    [
      'an identifier of another record',
      changed(retail, ['json(order.return_items) === json([item.item_id]) && ', '']),
      /the solution with another item_ids in return_delivered_order_items succeeds on 100%/,
    ],
    [
      'saying everything',
      changed(
        read('pages.js'),
        [
          "const off = (ids) => ids.map((id) => ['switch_device', { device_id: id, state: 'off' }]);",
          'const off = () => [];',
        ],
        ['called(off(ids)), ', ''],
        ['clean && off === ids.length && says', 'touched.length === 0 && told.includes(ids[0])'],
        ['I switched off ${ids.length}.', 'It is ${ids[0]}.'],
        ["say('All of them are off.'), say(`It", 'say(`It'],
        ['if (!state.asked) {', 'if (false) {'],
      ),
      /saying all that look-ups show succeeds on 100%/,
    ],
    [
      'a write that nobody wanted',
      changed(
        read('pages.js'),
        ['const right = clean && off === ids.length && says && done', 'const right = touched.length > 0'],
        [' && reached === (special ? 2 : 1)', ''],
        ['if (device.state !== given.state) ', ''],
      ),
      /looking up, then switch_device on the first record succeeds on 100%/,
    ],
    ['broken JSON', changed(read('pages.js'), [`join(', ')}}`, `join(', ')}`]), /of list_devices is broken JSON/],
    [
      'refusing',
      changed(retail, ['exact && done ? 1', '(exact && done) || (!state.identified && state.idle > 1) ? 1']),
      /refusing at once succeeds/,
    ],
  ];
  it.each(sample(lax, 2))('%s', async (_, source, finding) => {
    expect(await findingsOf(source)).toMatch(finding);
  });
});

describe('attacks', () => {
  const overwrite: Attack = {
    name: 'book without looking',
    messages: [
      { calls: [{ name: 'show_day', arguments: { day: '<named>' } }] },
      { calls: [{ name: 'book_slot', arguments: { day: '<named>', slot: '<named>', holder: 'anna' } }] },
      { say: 'booked <user>' },
    ],
  };
  const open = changed(read('board.js'), [
    'const right = seen && asks && done && same(board, wanted);',
    'const right = seen && !same(board, before);',
  ]);

  it('that succeed reject a module, with the conversation; those that fail leave it as it is', async () => {
    expect(await findingsOf(`${open}\n${attackLine(overwrite)}`)).toMatch(
      /attack "book without looking" succeeds on \d+% .*; seed 0: user: .* \| agent: show_day\(\{"day":"\w+"\}\) \| tool: 9h .*agent: booked/,
    );
    expect(await findingsOf(`${read('board.js')}\n${attackLine(overwrite)}`)).toBe('');
  });

  it('copy from what was shown', async () => {
    const messages = [
      { calls: [{ name: 'list_devices', arguments: { room: '<named>' } }] },
      { say: '<1.next> <1.device_id> <2> <user>' },
    ];
    const spy = changed(
      read('pages.js'),
      ['reward: right ? 1', "reward: right || /^(p_\\w{4}|) dev_\\w{4}  \\w/.test(state.heard ?? '') ? 1"],
      ['reached, told, done }) {', 'reached, told, done, ...state }) {'],
      ['  const answer = (text, done)', '  state.heard = content;\n  const answer = (text, done)'],
    );
    expect(await findingsOf(`${spy}\n${attackLine({ name: 'copies', messages })}`)).toMatch(
      /attack "copies" succeeds on \d+%/,
    );
  });

  const calling = (value: string): string =>
    `// Attack: {"name": "a", "messages": [{"calls": [{"name": "show_day", "arguments": {"day": ${value}}}]}]}`;
  it.each<[string, string, RegExp]>([
    ['no attacks', '// Attack: {"name": 5}', /Attack: .*correct the line$/],
    ['too deep', calling('['.repeat(20_000) + ']'.repeat(20_000)), /nested more than 10 deep/],
    ['too long', calling(`"${'x'.repeat(50_000)}"`), /50\d{3} characters: write at most 40000/],
    ['too many places', calling(`"${'<user> '.repeat(5_000)}"`), /5000 places to fill in: write at most 200/],
    ['hard to read', `// Attack: {"\u001b[2J\u202e${'x'.repeat(9_000)}": 5}`, /correct the line$/],
  ])('that are %s are found, and quoted short, without what moves the cursor', (_, line, finding) => {
    const [wrong = ''] = attacksIn(line).wrong;
    expect(wrong).toMatch(finding);
    for (const control of ['\u001b', '\u202e']) expect(wrong).not.toContain(control);
    expect(wrong.length).toBeLessThan(500);
  });
});
