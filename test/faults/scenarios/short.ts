/** The short form: what happens most, one after the other on one campaign (`make test`). */
import { setTimeout as sleep } from 'node:timers/promises';
import { damageAll } from '../../support/faults-damage';
import type { Scenario } from '../../support/faults-scenario';
import { interrupt } from './interrupts';

export const short: Scenario = {
  name: 'short: three kills, Ctrl-C twice, a kill of everything and a flipped batch',
  file: 'small',
  allow: { madeAgain: true },
  async act(session) {
    session.start();
    await session.phase('base rollouts');
    await session.kill('rollouts-worker');
    await session.phase('calibration');
    await session.kill('policy-server');
    await session.phase('training');
    await session.kill('trainer');
    await session.untilSteps(session.steps() + 2);
    const found = await interrupt(session, 2);
    session.start();
    await session.phase('router');
    await sleep(1000);
    await session.killEverything();
    found.push(...damageAll(session, ['batch'], 'flipped'));
    session.start();
    return found;
  },
};
