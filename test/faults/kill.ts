/**
 * A real campaign in which every service is killed once during its rollouts (`make test-faults`). It must end with as many
 * rollouts as one that was left alone: nothing is lost and nothing is counted twice.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Home } from '../../src/cli/project';
import { liveHolder } from '../../src/cli/run/lock';
import { signalGroup, startTime } from '../../src/cli/run/processes';
import { readRunState } from '../../src/cli/run/run-state';
import { reportSchema } from '../../src/domain/report';
import { CampaignRun, newCampaign } from '../support/campaign-run';

const MINUTE = 60_000;
// Base rollouts that last longer than all the kills. A short limit on silence: what a killed worker did is taken up soon.
const LINES = 'rollouts: { tasks: 120, perTask: 30 }\nworkers: { heartbeatSeconds: 20 }\n';

const rollouts = (home: Home) => {
  const report = reportSchema.parse(JSON.parse(readFileSync(join(home.root, 'faults/report.json'), 'utf8')));
  expect(report.campaign.status).toBe('stopped_at_stage');
  // The artifacts differ: a rollout's record holds its seconds, and batching moves log-probs by round-off.
  return { scored: report.rollouts?.scored.value, broken: report.rollouts?.broken.value };
};

it(
  'a campaign goes on whatever is killed',
  async () => {
    const ports = ['--temporal-port', '0', '--ui-port', '0'];
    const options = ['--until', 'selection', ...ports];
    const { home, file } = newCampaign('faults', LINES);

    const first = new CampaignRun(home, file, options);
    await first.says('base rollouts');
    for (const name of ['rollouts-worker', 'policy-server', 'control-worker', 'gpu-worker', 'temporal'])
      await first.kill(name);

    // The supervisor itself: what it ran ends by itself or is ended by the next one.
    const left = readRunState(home).processes;
    process.kill(liveHolder(home)?.pid ?? Number.NaN, 'SIGKILL');
    await first.exit;
    const second = new CampaignRun(home, file, options);
    await second.says('goes on');
    expect(left.filter(({ pid, started }) => startTime(pid) === started)).toEqual([]);

    // Ctrl-C: in order.
    second.child.kill('SIGINT');
    expect(await second.exit).toBe(130);
    expect(second.output).toContain('the same command goes on with it');
    expect(readRunState(home).processes).toEqual([]);

    const third = new CampaignRun(home, file, options);
    expect({ code: await third.exit, output: third.output }).toMatchObject({ code: 0 });
    const disturbed = rollouts(home);

    const alone = newCampaign('faults', LINES);
    expect(await new CampaignRun(alone.home, alone.file, options).exit).toBe(0);
    const undisturbed = rollouts(alone.home);
    expect(disturbed).toEqual(undisturbed);
    expect(disturbed).toMatchObject({ scored: 120 * 30, broken: 0 });
    for (const { pid } of left) expect(signalGroup(pid, 0)).toBe(false);
  },
  15 * MINUTE,
);
