/**
 * A real campaign that is disturbed while it trains (`make test-faults`): a trainer is killed, the campaign is paused and resumed, the gpu
 * worker is killed, the supervisor is killed, and the same command goes on to the whole report. No rollout may be made twice.
 */
import { execFileSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { openFolderStore } from '../../src/artifacts/folder-store';
import type { Home } from '../../src/cli/project';
import { liveHolder } from '../../src/cli/run/lock';
import { waitUntil } from '../../src/cli/run/processes';
import { figuresIn } from '../../src/domain/figure';
import { reportSchema } from '../../src/domain/report';
import type { ArtifactRef } from '../../src/domain/artifacts';
import { readRollouts } from '../../src/rollout/read';
import { CampaignRun, newCampaign, repository } from '../support/campaign-run';

const MINUTE = 60_000;
const LINES = `rollouts: { tasks: 120 }
calibration: { seeds: 12, rolloutsPerSeed: 8, maxRounds: 2 }
training: { groupsPerStep: 2, groupSize: 8, steps: 24, checkpointEvery: 3 }
validation: { seeds: 12, targetTasks: 12 }
router: { tasks: 30, folds: 3 }
evaluation: { tasks: 30 }
workers: { heartbeatSeconds: 20 }
`;

const trainings = (home: Home): string[] => {
  const folder = join(home.root, 'trainings');
  return existsSync(folder) ? readdirSync(folder).map((name) => join(folder, name)) : [];
};
const stepsOf = (training: string): number => {
  const file = join(training, 'metrics.jsonl');
  return existsSync(file) ? readFileSync(file, 'utf8').trim().split('\n').length : 0;
};
const stepsOfAll = (home: Home): number => trainings(home).reduce((sum, training) => sum + stepsOf(training), 0);

/** The processes that train in this home. */
const trainers = (home: Home): number[] =>
  readdirSync('/proc')
    .filter((entry) => /^\d+$/.test(entry))
    .filter((pid) => {
      try {
        const words = readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0');
        return words.includes('train') && words.some((word) => word.startsWith(join(home.root, 'trainings')));
      } catch {
        return false; // it has ended meanwhile
      }
    })
    .map(Number);

/** Rollouts in all batches of the store, whoever asked for them. */
async function stored(home: Home): Promise<number> {
  const store = openFolderStore(join(home.root, 'artifacts'));
  const keys = readdirSync(join(home.root, 'artifacts/keys'), { recursive: true, withFileTypes: true });
  let count = 0;
  for (const entry of keys.filter((one) => one.isFile())) {
    const text = readFileSync(join(entry.parentPath, entry.name), 'utf8');
    const { key, ref } = JSON.parse(text) as { key: string; ref: ArtifactRef };
    if (!key.startsWith('rollouts/')) continue;
    for await (const rollout of readRollouts({ store, ref })) if (rollout.status === 'scored') count++;
  }
  return count;
}

async function untilSteps(run: CampaignRun, home: Home, steps: number): Promise<void> {
  await waitUntil(() => stepsOfAll(home) >= steps || run.child.exitCode !== null, 300);
  if (stepsOfAll(home) < steps) throw new Error(`only ${stepsOfAll(home)} steps were trained:\n${run.output}`);
}

it(
  'a training goes on whatever is killed, and no rollout is made twice',
  async () => {
    const ports = ['--temporal-port', '0', '--ui-port', '0'];
    const { home, file } = newCampaign('training-faults', LINES);
    const command = (word: string) =>
      execFileSync(join(repository, 'bin/campaign'), ['--home', home.root, word, 'training-faults'], {
        encoding: 'utf8',
      });

    const first = new CampaignRun(home, file, ports);
    await untilSteps(first, home, 5);
    const victims = trainers(home);
    expect(victims.length).toBeGreaterThan(0);
    for (const pid of victims) process.kill(pid, 'SIGKILL');
    await untilSteps(first, home, 12);

    expect(command('pause')).toContain('pausing');
    expect(command('status')).toContain('paused');
    expect(command('resume')).toContain('goes on');
    await untilSteps(first, home, 18);
    await first.kill('gpu-worker');
    await untilSteps(first, home, 30);

    process.kill(liveHolder(home)?.pid ?? Number.NaN, 'SIGKILL');
    await first.exit;
    const second = new CampaignRun(home, file, ports);
    expect({ code: await second.exit, output: second.output }).toMatchObject({ code: 0 });

    const report = reportSchema.parse(JSON.parse(readFileSync(join(home.root, 'training-faults/report.json'), 'utf8')));
    expect(report.campaign.status).toBe('completed');
    expect(report.rollouts?.broken.value).toBe(0);
    const store = openFolderStore(join(home.root, 'artifacts'));
    for (const ref of figuresIn(report).flatMap((figure) => figure.from)) await store.provenance(ref);
    for (const training of trainings(home)) {
      const { steps } = JSON.parse(readFileSync(join(training, 'job.json'), 'utf8')) as { steps: number };
      const done = readFileSync(join(training, 'metrics.jsonl'), 'utf8').trim().split('\n');
      expect(done.map((line) => (JSON.parse(line) as { step: number }).step)).toEqual(
        Array.from({ length: steps }, (_, n) => n + 1),
      );
    }
    // What the report counts is all there is: no batch was made beside it.
    expect(await stored(home)).toBe(report.rollouts?.scored.value);
  },
  20 * MINUTE,
);
