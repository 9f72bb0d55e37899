/** `campaign select`: the rule over label files of the published form; how the files are read, the given analyst's tests say. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { selectionRuleSchema } from '../../../src/domain/campaign';
import type { Selection } from '../../../src/domain/capability';
import { createProgram } from '../../../src/cli/main';
import { runCommand } from '../../support/campaign-command';
import { newFolder } from '../../support/temporary-folder';

const fixtures = join(__dirname, '../../fixtures/labels');
const valid = join(fixtures, 'valid');

const run = async (folder: string, ...args: string[]): Promise<string> =>
  (await runCommand('select', '--labels', folder, ...args)).text;
const selection = async (...args: string[]) => JSON.parse(await run(valid, '--json', ...args)) as Selection;

it('gives the figures that were worked out by hand', async () => {
  const { passes, capabilities } = await selection('--votes', '2');
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
  const nothing = { coverage: { mean: 0, std: 0 }, delta: { mean: 0, std: 0 }, votes: 0, evidence: [] };
  expect(rare).toEqual({ name: 'handle_rare_case', passes: 1, selected: false, ...nothing });
  // Lacking in 6 of 10 failures and 3 of 5 successes: frequent, but no contrast.
  expect(greet).toMatchObject({ name: 'greet_user', coverage: { mean: 0.6 }, delta: { mean: 0 }, selected: false });
});

it.each([
  ['--votes 1 --delta 0.45', ['check_order_status']],
  ['--votes 2 --delta 0.45', []],
  ['--votes 2 --delta 0 --rho 0.55', ['greet_user']],
])('takes thresholds: %s', async (options, names) => {
  const { capabilities } = await selection(...options.split(' '));
  expect(capabilities.filter(({ selected }) => selected).map(({ name }) => name)).toEqual(names);
});

it('prints a table, and says that too few passes select nothing', async () => {
  const lines = (await run(valid)).split('\n');
  expect(lines[0]?.split(/\s{2,}/)).toEqual(['capability', 'Cov', 'Delta', 'votes', 'selected']);
  expect(lines[1]?.split(/\s{2,}/)).toEqual(['check_order_status', '0.450 ± 0.050', '0.438 ± 0.063', '2/2', 'no']);
  expect(lines).toContain('0 of 3 selected, from 2 passes: fewer passes (2) than votes (8): add passes or lower votes');
});

/** A folder with one pass, of this text. */
function pass(text: string): string {
  const folder = newFolder();
  writeFileSync(join(folder, 'run_00.json'), text);
  return folder;
}
const labels = (own: object) =>
  pass(JSON.stringify({ attempt: 0, totals: { total_failed: 1, total_passed: 1 }, labels: own }));

it.each([
  ['a missing folder', join(fixtures, 'nowhere'), /^--labels \S+nowhere: no such folder; name.*$/],
  ['broken JSON', pass('{'), /run_00\.json: not JSON .*; write.*$/],
  ['no capability', labels({}), /no capability in any of 1 files; .*$/],
  ['a missing list', labels({ a_b: {} }), /run_00\.json: labels\.a_b\.lacking_failed: .*; see.*$/],
])('refuses %s in one line', async (_what, folder, message) => {
  await expect(run(folder)).rejects.toThrow(message);
});

it('refuses lists that do not partition with file, capability, lists and ids', async () => {
  await expect(run(join(fixtures, 'overlap'))).rejects.toMatchObject({
    message: expect.stringMatching(
      /run_01\.json: capability "check_order_status": in both lacking_failed and present_failed: f1;.*$/,
    ),
    evidence: expect.arrayContaining([expect.stringMatching(/"check_order_status": in none of .*_failed: f9;/)]),
  });
});

it('names in its help the rule of a campaign file', () => {
  const command = createProgram().commands.find((one) => one.name() === 'select')!;
  const help = command.helpInformation().replace(/\s+/g, ' ');
  const { rho, delta, votes } = selectionRuleSchema.parse({});
  for (const [option, value] of Object.entries({ rho, delta, votes }))
    expect(help).toMatch(new RegExp(`--${option} [^-]*\\(default: ${value}\\)`));
});
