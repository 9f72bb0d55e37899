/**
 * Upgrades: campaigns wait for an approval when a build changes the workflow's commands. One completes on the bundle that it began with, the other is
 * started again with --restart and completes on the new one.
 */
import { Client, Connection } from '@temporalio/client';
import { cpSync, existsSync, mkdirSync, readdirSync, symlinkSync, utimesSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { homeAt } from '../../src/cli/project';
import { serverOf } from '../../src/cli/services/processes';
import { interceptorModules } from '../../src/workers/bundle';
import { CampaignRun, command, reportOf, repository, writeCampaign } from '../support/campaign-run';
import { shopParts } from '../support/kinds';
import { temporaryFolder } from '../support/temporary-folder';
import { bundled } from '../workflows/environment';

jest.setTimeout(15 * 60_000);
const folder = temporaryFolder();
const home = homeAt(join(folder, 'home'));
const bundles = join(home.root, 'artifacts', 'bundles');

/** A checkout whose build the test may change. */
const checkout = join(folder, 'checkout');
mkdirSync(checkout);
for (const name of ['bin', 'dist', 'examples', 'package.json'])
  cpSync(join(repository, name), join(checkout, name), { recursive: true });
for (const name of ['node_modules', 'prompts', 'trainer', '.venv'])
  symlinkSync(join(repository, name), join(checkout, name));

const lines = `plugins: ${JSON.stringify([join(checkout, 'examples', 'shop')])}
target: ${JSON.stringify(shopParts.target)}
approval: { environments: true }
rollouts: { tasks: 24, perTask: 2 }
selection: { maxCandidates: 1, passes: 2, votes: 1, rho: 0, delta: 0 }
calibration: { seeds: 2, rolloutsPerSeed: 2, meanReward: [0, 1], successRate: [0, 1], maxAllSuccess: 1, maxAllZero: 1, minInformative: 0, minRewardStd: 0 }
training: { groupsPerStep: 1, groupSize: 8, steps: 2, checkpointEvery: 2 }
validation: { seeds: 2, targetTasks: 4 }
arms: []
router: { tasks: 8, folds: 2 }
evaluation: { tasks: 4 }
`;

function run(name: string, ...options: string[]): CampaignRun {
  const file = join(folder, `${name}.yaml`);
  writeCampaign({ file, name, lines });
  return new CampaignRun(home, file, options, join(checkout, 'bin', 'campaign'));
}

async function untilItWaits(run: CampaignRun): Promise<void> {
  while (!run.output.includes('waits for approval')) {
    if (run.ended) throw new Error(`the run has ended:\n${run.output}`);
    await sleep(200);
  }
}

async function interrupt(run: CampaignRun): Promise<void> {
  run.child.kill('SIGINT');
  expect(await run.exit).toBe(130);
}

/** Returns the version of the workflow code by workflow, of a campaign's runs and their children, with how each has ended. */
async function versionsOf(name: string): Promise<[id: string, version: string, status: string][]> {
  const connection = await Connection.connect({ address: serverOf(home)! });
  const found: [string, string, string][] = [];
  for await (const { workflowId, status, raw } of new Client({ connection }).workflow.list())
    if (workflowId.split('/')[0] === name) {
      const data = raw.searchAttributes?.indexedFields?.['TemporalWorkerDeploymentVersion']?.data;
      const version = String(JSON.parse(Buffer.from(data ?? []).toString() || '""'))
        .split(':')
        .at(-1)!;
      found.push([workflowId.replace(/\/capability\/.*/, '/capability'), version, status.name]);
    }
  await connection.close();
  return found.sort();
}

test('a campaign completes on the bundle that it began with; --restart and new campaigns take the new one', async () => {
  for (const name of ['stays', 'moves']) {
    const begun = run(name);
    await untilItWaits(begun);
    await interrupt(begun);
  }
  const [old] = readdirSync(bundles).map((file) => file.replace('.js', ''));
  const interceptors = [...interceptorModules, resolve(__dirname, '..', 'fixtures', 'changed-code', 'interceptors.ts')];
  writeFileSync(join(checkout, 'dist', 'workflow-bundle.js'), (await bundled(interceptors)).code);
  // Both bundles are old, and one of them is needed.
  writeFileSync(join(bundles, '0123456789ab.js'), '');
  for (const file of readdirSync(bundles)) utimesSync(join(bundles, file), 0, 0);

  const moves = run('moves', '--restart', '--yes');
  await untilItWaits(moves);
  expect(existsSync(join(bundles, '0123456789ab.js'))).toBe(false);
  const now = readdirSync(bundles).map((file) => file.replace('.js', '')).find((version) => version !== old)!; // prettier-ignore
  expect(moves.output).toContain(`new campaigns begin on version ${now.slice(0, 12)}`);
  await command(home, 'approve', 'moves');
  await moves.finish();

  const stays = run('stays');
  await untilItWaits(stays);
  expect(stays.output).toContain(`campaign stays continues on ${old!.slice(0, 12)}`);
  expect(await versionsOf('stays')).toEqual([
    ['stays', old, 'RUNNING'],
    ['stays/capability', old, 'RUNNING'],
  ]);
  const moved = await versionsOf('moves');
  expect(moved).toHaveLength(4);
  expect(moved).toEqual(
    expect.arrayContaining([
      ['moves', now, 'COMPLETED'],
      ['moves', old, 'TERMINATED'],
      ['moves/capability', now, 'COMPLETED'],
      ['moves/capability', old, expect.stringMatching(/TERMINATED|CANCELLED/)],
    ]),
  );
  await command(home, 'approve', 'stays');
  await stays.finish();
  for (const name of ['stays', 'moves']) expect(reportOf(home, name).campaign.status).toBe('completed');
});
