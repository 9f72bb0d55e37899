import { mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { selectionRuleSchema } from '../../../src/domain/campaign';
import { UserError } from '../../../src/cli/errors';
import { createProgram } from '../../../src/cli/main';
import { runCommand } from '../../support/campaign-command';

const fixtures = join(__dirname, '../../fixtures/labels');

const run = async (...args: string[]): Promise<string> => (await runCommand('select', ...args)).text;

async function failure(...args: string[]): Promise<UserError> {
  const error: unknown = await run(...args).catch((thrown: unknown) => thrown);
  if (error instanceof UserError) return error;
  throw new Error(`the command did not fail as it should: ${error}`);
}

function folderWith(files: Record<string, string>): string {
  const folder = mkdtempSync(join(tmpdir(), 'labels-'));
  for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, name), text);
  return folder;
}

describe('campaign select', () => {
  it('gives the figures that were worked out by hand', async () => {
    const { passes, capabilities } = JSON.parse(
      await run('--labels', join(fixtures, 'valid'), '--votes', '2', '--json'),
    );
    expect(passes).toBe(2);
    const [order, greet, rare] = capabilities;
    expect(order).toEqual({
      name: 'check_order_status',
      // Cov 0.5 and 0.4; Delta 5/8 - 1/4 and 4/8 - 0/4
      coverage: { mean: expect.closeTo(0.45, 12), std: expect.closeTo(0.05, 12) },
      delta: { mean: expect.closeTo(0.4375, 12), std: expect.closeTo(0.0625, 12) },
      votes: 2,
      passes: 2,
      selected: true,
      evidence: ['f0', 'f1', 'f2', 'f3', 'f4'],
    });
    expect(rare).toEqual({
      name: 'handle_rare_case',
      coverage: { mean: 0, std: 0 },
      delta: { mean: 0, std: 0 },
      votes: 0,
      passes: 1,
      selected: false,
      evidence: [],
    });
    // Lacking in 6 of 10 failures and 3 of 5 successes: frequent, but no contrast.
    expect(greet).toMatchObject({ name: 'greet_user', coverage: { mean: 0.6 }, delta: { mean: 0 }, selected: false });
  });

  it('takes thresholds', async () => {
    const selected = async (...args: string[]) =>
      JSON.parse(await run('--labels', join(fixtures, 'valid'), '--json', ...args))
        .capabilities.filter((one: { selected: boolean }) => one.selected)
        .map((one: { name: string }) => one.name);
    expect(await selected('--votes', '1', '--delta', '0.45')).toEqual(['check_order_status']);
    expect(await selected('--votes', '2', '--delta', '0.45')).toEqual([]);
    expect(await selected('--votes', '2', '--delta', '0', '--rho', '0.55')).toEqual(['greet_user']);
  });

  it('reads numeric ids as text', async () => {
    const [one] = JSON.parse(await run('--labels', join(fixtures, 'numbers'), '--json')).capabilities;
    expect(one.evidence).toEqual(['0', '1', '2', '3', '4']);
  });

  it('prints a table, and says that too few passes select nothing', async () => {
    const lines = (await run('--labels', join(fixtures, 'valid'))).split('\n');
    expect(lines[0]?.split(/\s{2,}/)).toEqual(['capability', 'Cov', 'Delta', 'votes', 'selected']);
    expect(lines[1]?.split(/\s{2,}/)).toEqual(['check_order_status', '0.450 ± 0.050', '0.438 ± 0.063', '2/2', 'no']);
    expect(lines).toContain(
      '0 of 3 selected, from 2 passes: fewer passes (2) than votes (8): add passes or lower votes',
    );
  });

  it('rejects lists that do not partition with file, capability, lists and ids', async () => {
    const { message, evidence } = await failure('--labels', join(fixtures, 'overlap'));
    expect(message).toMatch(
      /run_01\.json: capability "check_order_status": in both lacking_failed and present_failed: f1;/,
    );
    expect(message).not.toContain('\n');
    expect(evidence.join('\n')).toMatch(/"check_order_status": in none of .*_failed: f9;/);
  });

  const pass = (labels: object) =>
    folderWith({ 'run_00.json': JSON.stringify({ attempt: 0, totals: { total_failed: 1, total_passed: 1 }, labels }) });
  it.each([
    ['a missing folder', ['--labels', join(fixtures, 'nowhere')], /nowhere: no such folder; name/],
    ['an empty folder', ['--labels', folderWith({})], /no file run_NN\.json; name/],
    ['broken JSON', ['--labels', folderWith({ 'run_00.json': '{' })], /run_00\.json: not JSON .*; write/],
    ['no capability', ['--labels', pass({})], /no capability in any of 1 files; /],
    ['a missing list', ['--labels', pass({ a_b: {} })], /run_00\.json: labels\.a_b\.lacking_failed: .*; see/],
  ])('refuses %s in one line', async (_, args, message) => {
    const error = await failure(...args);
    expect(error.message).toMatch(message);
    expect(error.message).not.toContain('\n');
  });
});

it('names in its help the rule of a campaign file', () => {
  const command = createProgram().commands.find((one) => one.name() === 'select')!;
  const help = command.helpInformation().replace(/\s+/g, ' ');
  const { rho, delta, votes } = selectionRuleSchema.parse({});
  for (const [option, value] of Object.entries({ rho, delta, votes }))
    expect(help).toMatch(new RegExp(`--${option} [^-]*\\(default: ${value}\\)`));
});
