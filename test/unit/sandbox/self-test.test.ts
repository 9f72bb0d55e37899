/** The self-test on modules of its own: one that passes, and what is found where a part of it is wrong. */
import { selfTest } from '../../../src/sandbox/self-test';

/** Look the colour of a house up, paint it so, say done. */
const parts = {
  helpers: `
    const COLOURS = ['red','blue','green','black','white','grey','pink','brown','gold','teal','plum','lime','navy','rust','jade','mint'];
    const mix = (n) => { let t = Math.imul(n ^ (n >>> 15), 0x2c1b3c6d) + 0x6d2b79f5; t = Math.imul(t ^ (t >>> 13), 0x297a2d39); return (t ^ (t >>> 16)) >>> 0; };
    const house = { type: 'string', pattern: '^h[0-9]{2}$' };
    const colour = { type: 'string', enum: COLOURS };
    const object = (properties) => ({ type: 'object', properties, required: Object.keys(properties) });
    const record = object({ colour, house });
    const tools = [
      { name: 'get_house', description: 'look it up', parameters: object({ house }), annotations: { readOnlyHint: true }, outputSchema: record },
      { name: 'paint', description: 'paint it', parameters: object({ house, colour }) },
      { name: 'wash', description: 'wash it', parameters: object({ house }) },
    ];`,
  describe: `export const describe = () => ({ policy: 'paint it anew .', tools, maxSteps: 6 });`,
  make: `export const make = (seed) => ({ house: 'h' + String(mix(seed) % 100).padStart(2, '0'), colour: COLOURS[mix(seed + 7e6) % 16], painted: null, washed: 0, looked: false });`,
  start: `export const start = (state) => [{ role: 'user', content: 'house ' + state.house + ' , please' }];`,
  step: `export const step = (state, { content, toolCalls = [] }) => {
    if (toolCalls.length === 0) return { state: { ...state, said: content }, done: true, messages: [{ role: 'user', content: 'bye' }] };
    const messages = toolCalls.map(({ id, name, arguments: given }) => {
      const known = given.house === state.house;
      if (name === 'wash') state.washed += 1;
      if (known && name === 'get_house') state.looked = true;
      if (known && name === 'paint') state.painted = given.colour;
      return { role: 'tool', toolCallId: id, content: !known ? 'error' : name === 'get_house' ? state.colour + ' ' + state.house : 'ok' };
    });
    return { state, done: false, messages };
  };`,
  reward: `const right = (s) => s.painted === s.colour && s.looked && s.washed === 0;
    export const reward = (s) => ({ reward: right(s) ? 1 : 0, breakdown: {} });`,
  reference: `export const reference = () => ({ actions: [], tell: [] });`,
  solve: `const use = (name, given) => ({ role: 'assistant', content: '', toolCalls: [{ id: 'call_0', name, arguments: given }] });
    export const solve = (seed) => {
      const { house, colour } = make(seed);
      return [use('get_house', { house }), use('paint', { house, colour }), { role: 'assistant', content: 'done .' }];
    };`,
  shortcuts: '',
};
const moduleOf = (changes: Partial<typeof parts> = {}): string => Object.values({ ...parts, ...changes }).join('\n');
const findingsOf = async (changes: Partial<typeof parts>): Promise<string> =>
  (await selfTest({ source: moduleOf(changes) })).findings.join('\n');

/** Of one part, another text in the place of one that is there. */
type Change = [part: keyof typeof parts, from: string | RegExp, to: string];
const changing = (...[name, from, to]: Change): Partial<typeof parts> => {
  const changed = parts[name].replace(from, () => to);
  expect(changed).not.toBe(parts[name]);
  return { [name]: changed };
};
const rewarding = (text: string): Change => ['reward', 'reward: right(s) ?', `reward: right(s) || ${text} ?`];
const withShortcuts = (text: string): Change => ['shortcuts', /^/, `export const shortcuts = ${text};`];

describe('self-test', () => {
  const house = `'h' + String(mix(seed) % 100).padStart(2, '0')`;
  const unseen = `'h01', nonce: mix(seed)`;
  const end = `, { role: 'assistant', content: 'done .' }`;
  const heldOut =
    /^make: \d+ of 34 held-out seeds give an instance of one of 100 training seeds, e\.g\. seed 10000\d\d that of seed 100\d\d: draw/;
  const some = '(seed) => (seed === 0 ? {} : { always: solve(seed) })';

  it.each<[string, Change, RegExp | string]>([
    // Solutions and instances.
    ['a reference that fails', ['solve', 'colour })', `colour: 'red' })`], /reference solutions score below 1/],
    ['a solution that does not end', ['solve', end, ''], /seed 0 is not done after the last message/],
    ['a longer solution than steps', ['describe', 'maxSteps: 6', 'maxSteps: 2'], /maxSteps 2 is below the 3/],
    ['one instance only', ['make', '(seed) =>', '(_, seed = 1) =>'], /make: 1 distinct instances of 102/],
    ['instances that differ where nobody sees', ['make', house, unseen], /make: \d+ distinct instances/],
    ['held-out instances that training shows', ['make', '(seed) =>', '(n, seed = mix(n) % 300) =>'], heldOut],
    ['broken JSON', ['step', `state.colour + ' '`, `'{"colour": ' + state.colour + ' '`], /is broken JSON/],
    // What the sandbox refuses is a finding.
    ['a reward above 1', ['reward', '? 1 :', '? 1.5 :'], /the module fails: reward: result.reward/],
    ['a missing function', ['solve', /[^]*/, ''], /does not export solve/],
    ['no module', ['helpers', /[^]*/, '{'], /the module fails.*SyntaxError/],
    ['too few tools', ['helpers', /\{ name: 'wash'.*\n/, '\n'], /describe: 2 tools: offer 3 to 5/],
    // Policies that must not pay.
    ['a constant text that pays', rewarding(`s.said === 'done .'`), /always saying "done \."/],
    ['a reward for nothing', rewarding('s.said === undefined'), 'doing nothing'],
    ['a call that pays', rewarding('s.looked || s.washed >= 2'), 'calling wash over and over'],
    ['an echo that pays', rewarding(`s.said === 'house ' + s.house + ' , please'`), 'saying what the user says'],
    ['twenty words that pay', rewarding(`(s.said ?? '').split(' ').length >= 20`), 'saying twenty words'],
    ['an empty message that pays', rewarding(`s.said === ''`), 'an empty message'],
    ['any value that pays', rewarding('s.painted !== null'), 'the solution with another colour in paint'],
    ['a write twice that pays', rewarding('s.washed >= 2'), 'every write twice'],
    ['more writes than were asked for', ['reward', ' && s.washed === 0', ''], 'every write on every record'],
    ['words without a write', rewarding('s.looked && s.said'), 'the solution without its writes'],
    ['a shortcut that some seeds have', withShortcuts(some), 'shortcut "always"'],
  ])('finds %s', async (_, change, finding) => {
    const { passed, findings } = await selfTest({ source: moduleOf(changing(...change)) });
    expect(passed).toBe(false);
    const pays = `${String(finding)} succeeds on 100%`;
    expect(findings.join('\n')).toMatch(typeof finding === 'string' ? pays : finding);
  });
});

describe('the audit', () => {
  it('passes a module with one branch, and reports every episode', async () => {
    const progress = jest.fn();
    expect(await selfTest({ source: moduleOf(), progress })).toEqual({ passed: true, findings: [] });
    const reports = progress.mock.calls as [number, number][];
    expect(reports.every(([done, total], n) => done <= total && done >= (reports[n - 1]?.[0] ?? 0))).toBe(true);
    const [done, total] = reports.at(-1)!;
    expect(done).toBe(total);
    expect(reports.length).toBeGreaterThan(500);
  });

  it('finds one branch of the solutions that pays on most instances', async () => {
    const forbidden = (share: number): Partial<typeof parts> => ({
      make: parts.make.replace('painted: null', `forbidden: mix(seed + 9e6) % 100 < ${share}, painted: null`),
      step: parts.step.replace(
        `state.colour + ' ' + state.house`,
        `state.colour + ' ' + state.house + (state.forbidden ? ' kept' : ' free')`,
      ),
      helpers: parts.helpers.replace(
        'object({ colour, house })',
        `object({ colour, house, kept: { enum: ['kept', 'free'] } })`,
      ),
      reward: `export const reward = (s) => ({ reward: (s.forbidden ? s.painted === null && s.said === 'no .' : s.painted === s.colour && s.said === 'done .') && s.looked && !s.washed ? 1 : 0, breakdown: {} });`,
      solve: parts.solve
        .replace('{ house, colour }', '{ house, colour, forbidden }')
        .replace(
          `return [`,
          `if (forbidden) return [use('get_house', { house }), { role: 'assistant', content: 'no .' }];\n return [`,
        ),
    });
    const found = await findingsOf(forbidden(90));
    expect(found).toMatch(/always the branch "get_house, "no \.""? succeeds on \d+%/);
    expect(await findingsOf(forbidden(50))).toBe('');
  });

  it('finds a branch that follows from what the agent did, once, and takes one that follows from the seed', async () => {
    const branch = (text: string): Partial<typeof parts> => ({
      reward: parts.reward.replace('breakdown: {}', `breakdown: {}, branch: ${text}`),
    });
    expect(await findingsOf(branch(`s.house < 'h50' ? 'low' : 'high'`))).toBe('');
    expect(await findingsOf(branch(`right(s) ? 'solved' : undefined`))).toMatch(
      /^reward: seed \d+ is of branch none after doing nothing, and of branch "solved" after its solution: take the branch from the seed alone, whatever the agent does$/,
    );
  });

  it('ends when the time of the module is spent', async () => {
    const slow = parts.step.replace('=> {', '=> { for (let i = 0; i < 8e5; i += 1);');
    const { findings } = await selfTest({ source: moduleOf({ step: slow }), cpuMs: 400 });
    expect(findings.join()).toMatch(/ends unfinished: .* went into \d+ episodes/);
  });
});
