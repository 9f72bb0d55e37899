/** Who gets a thread, and for how long; and whose time counts. */
import { openSandbox, type Sandbox, type SandboxOptions, type Claim, threadSlots } from '../../../src/sandbox/sandbox';
import { closedAfterwards } from '../../support/opened';

jest.setTimeout(60_000);

const sandboxOf = (source: string, options: SandboxOptions = {}): Sandbox =>
  closedAfterwards(openSandbox({ source, ...options }));

describe('thread slots', () => {
  beforeEach(() => jest.useFakeTimers());
  afterEach(() => jest.useRealTimers());
  const claimOf = (name: string, granted: string[] = [], idleSince?: number): Claim => ({
    granted: () => void granted.push(name),
    giveBack: jest.fn(),
    idleSince: () => idleSince,
  });

  it('are granted in the order of asking, never more than there are', () => {
    const slots = threadSlots({ most: 2, idleMs: 10, turnMs: 10_000 });
    const granted: string[] = [];
    const claims = ['a', 'b', 'c', 'd'].map((name) => claimOf(name, granted));
    for (const claim of claims) slots.claim(claim);
    slots.claim(claims[2]!);
    expect(granted).toEqual(['a', 'b']);
    slots.release(claims[1]!);
    expect(granted).toEqual(['a', 'b', 'c']);
    for (const claim of claims) slots.release(claim);
    expect(granted).toEqual(['a', 'b', 'c', 'd']);
  });

  it('are asked back from the one that has been idle longest, where others wait', () => {
    const slots = threadSlots({ most: 2, idleMs: 10, turnMs: 10_000 });
    const [busy, idle, third] = [claimOf('busy'), claimOf('idle', [], performance.now()), claimOf('third')];
    slots.claim(busy);
    slots.claim(idle);
    jest.advanceTimersByTime(150);
    expect(idle.giveBack).not.toHaveBeenCalled();
    slots.claim(third);
    jest.advanceTimersByTime(200);
    expect(idle.giveBack).toHaveBeenCalled();
    expect(busy.giveBack).not.toHaveBeenCalled();
  });

  it('are given on after a turn, and kept where nobody waits', () => {
    const slots = threadSlots({ most: 1, idleMs: 10_000, turnMs: 50 });
    const [first, second] = [claimOf('first'), claimOf('second')];
    slots.claim(first);
    jest.advanceTimersByTime(80);
    expect(slots.turnIsOver(first)).toBe(false);
    slots.claim(second);
    expect(slots.turnIsOver(first)).toBe(false);
    jest.advanceTimersByTime(80);
    expect(slots.turnIsOver(first)).toBe(true);
  });
});

describe('sandboxes', () => {
  it('share few threads: all calls are answered, whoever has more of them', async () => {
    const threads = threadSlots({ most: 2, idleMs: 50, turnMs: 100 });
    const source = 'export const f = (n) => { for (let i = 0; i < 3e4; i += 1); return n; };';
    const open = Array.from({ length: 5 }, () => sandboxOf(source, { threads }));
    const answers = await Promise.all(
      open.map((sandbox, n) =>
        Promise.all(Array.from({ length: n === 0 ? 300 : 3 }, (_, i) => sandbox.call('f', [i]))),
      ),
    );
    expect(answers.map((all) => all.every((answer, i) => answer === i))).toEqual(Array(5).fill(true));
    expect(await open[4]!.call('f', [7])).toBe(7);
  });

  const onLinux = process.platform === 'linux' ? it : it.skip;
  onLinux('count CPU time, so that a call among many others has the time that it would have alone', async () => {
    const source = 'export const work = (n) => { let s = 0; for (let i = 0; i < n; i += 1) s += i % 7; return s; };';
    const among = sandboxOf(source, { callMs: 400, killMs: 2_000 });
    await among.call('work', [1e5]);
    const spent = () => among.spent().functions.find(({ name }) => name === 'work')!.ms;
    const took = async (n: number): Promise<number> => {
      const before = spent();
      await among.call('work', [n]);
      return spent() - before;
    };
    const each = Math.min(await took(1e6), await took(1e6), await took(1e6));
    const n = Math.round((1e6 * 200) / each);
    // Three times as many threads as cores on a machine with two: the call takes longer than its limit on the wall.
    const looping = () => sandboxOf('export const loop = () => { for (;;) {} };', { callMs: 800, killMs: 2_000 });
    const loops = Promise.allSettled(Array.from({ length: 6 }, () => looping().call('loop', [])));
    expect(await among.call('work', [n])).toBeGreaterThan(0);
    for (const loop of await loops)
      expect(loop).toMatchObject({ reason: { message: expect.stringMatching(/longer than its limit/) as string } });
  });

  it('tell where the time went', async () => {
    const sandbox = sandboxOf('export const slow = () => { for (let i = 0; i < 3e6; i += 1); return 1; };');
    for (let n = 0; n < 3; n += 1) await sandbox.call('slow', []);
    const { cpuMs, functions } = sandbox.spent();
    expect(functions).toEqual([{ name: 'slow', calls: 3, ms: expect.any(Number) }]);
    expect(functions[0]!.ms).toBeGreaterThan(0);
    expect(cpuMs).toBeGreaterThan(0);
  });
});
