/** A campaign is cancelled while it trains; the same command continues. */
import { command } from '../../support/campaign-run';
import { CAMPAIGN } from '../../support/faults-checks';
import type { Scenario } from '../../support/faults-scenario';

export const cancelledTraining: Scenario = {
  name: 'cancel: during a training, then the same command',
  file: 'small',
  async act(session) {
    session.start();
    await session.untilSteps(2);
    const begun = Date.now();
    await command(session.home, 'cancel', CAMPAIGN);
    const code = await session.run.exit;
    session.notes.push(`cancelled within ${((Date.now() - begun) / 1000).toFixed(0)} s`);
    const ended = session.run.lines();
    const found = code === 130 ? [] : [`the cancelled run ended with ${code} instead of 130`];
    for (const shown of ['cancelling', 'cancelled'])
      if (!ended.some(({ stage, status }) => stage === 'campaign' && status === shown))
        found.push(`the campaign is not shown as ${shown}`);
    const failed = ended.filter(({ status }) => status === 'failed').map(({ stage, child }) => child ?? stage);
    if (failed.length > 0) found.push(`shown as failed: ${failed.join(', ')}`);
    const run = session.start();
    const continues = () => run.lines().some(({ detail }) => /continues at step [1-9]/.test(detail ?? ''));
    await session.until(continues, 'a training that says where it continues');
    return found;
  },
};

export const cancels: Scenario[] = [cancelledTraining];
