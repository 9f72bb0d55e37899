/** Two homes with two base models on one Temporal server, side by side: each plays its own rollouts with its own model. */
import { dirname, join } from 'node:path';
import { homeAt, type Home } from '../../../src/cli/project';
import { serverOf } from '../../../src/cli/services/processes';
import { CampaignRun, reportOf, writeCampaign } from '../../support/campaign-run';
import { makeRandomModel } from '../../support/embedded-server';
import { rolloutsIn } from '../../support/faults-checks';
import { processesOf, serviceOf, signal } from '../../support/faults-processes';
import type { Scenario } from '../../support/faults-scenario';
import type { Session } from '../../support/faults-session';

const NAME = 'neighbour';
const TASKS = 20;

/** Returns the errors in the neighbour's report and store. */
async function wrongIn(neighbour: Home, session: Session): Promise<string[]> {
  const report = reportOf(neighbour, NAME);
  const { scored, broken } = report.rollouts ?? {};
  const [own, other] = [await rolloutsIn(neighbour), await rolloutsIn(session.home)];
  const solved = [...own.values()].filter(Boolean).length;
  const shared = [...own.keys()].filter((key) => other.has(key)).length;
  return [
    ...(/^random@/.test(report.campaign.baseModel) ? [] : [`its report is of ${report.campaign.baseModel}`]),
    ...(scored?.value === TASKS && broken?.value === 0
      ? []
      : [`it counts ${scored?.value} and ${broken?.value} broken`]),
    ...(own.size === TASKS ? [] : [`its store holds ${own.size} rollouts`]),
    ...(solved === 0 ? [] : [`random weights solve ${solved} of its tasks`]),
    ...(shared === 0 ? [] : [`${shared} rollouts are in both stores`]),
  ].map((violation) => `${NAME}: ${violation}`);
}

/** The workers and the server of one are killed while the other's are there to take its steps. */
export const twoHomes: Scenario = {
  name: 'two homes: two base models on one Temporal server',
  file: 'small',
  async act(session) {
    const folder = dirname(session.file);
    const [home, model, file] = [homeAt(join(folder, NAME)), join(folder, 'random'), join(folder, `${NAME}.yaml`)];
    makeRandomModel(model);
    const lines = `rollouts: { tasks: ${TASKS}, perTask: 1 }\nvalidation: { targetTasks: 4 }\n`;
    writeCampaign({ file, name: NAME, model, lines });
    session.cleanups.push(() => processesOf(home).forEach(({ pid }) => signal(pid, 'SIGKILL')));

    session.start();
    const address = () => serverOf(session.home);
    await session.until(() => address() !== undefined, 'its Temporal server');
    // Random weights can't work on the target: the command says so, and has to be forced.
    const options = ['--until', 'rollouts', '--force', '--temporal-address', address() ?? ''];
    const neighbour = new CampaignRun(home, file, options);
    await session.until(() => serviceOf(home, 'rollouts-worker') !== undefined, `the worker of ${NAME}`);
    for (const name of ['rollouts-worker', 'policy-server', 'gpu-worker'] as const) await session.kill(name);
    const code = await neighbour.exit;
    await session.run.exit;
    return code === 0 ? wrongIn(home, session) : [`${NAME} ended with ${code}:\n${neighbour.output}`];
  },
};
