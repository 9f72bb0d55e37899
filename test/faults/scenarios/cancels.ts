/** A campaign is cancelled while it trains; the same command continues. */
import { command } from '../../support/campaign-run';
import { CAMPAIGN } from '../../support/faults-checks';
import { signal, trainersOf } from '../../support/faults-processes';
import type { Scenario } from '../../support/faults-scenario';

export const cancelledTraining: Scenario = {
  name: 'cancel: during a training, then the same command',
  file: 'small',
  async act(session) {
    const first = session.start();
    await session.untilSteps(2);
    // On quiet cores a training would end before the command has started.
    const trainers = trainersOf(session.home);
    for (const pid of trainers) signal(pid, 'SIGSTOP');
    const begun = Date.now();
    const cancel = command(session.home, 'cancel', CAMPAIGN, '--yes');
    const isCancelling = () => first.lines().some(({ status }) => status === 'cancelling');
    await session.until(isCancelling, 'the campaign is cancelling');
    for (const pid of trainers) signal(pid, 'SIGCONT');
    await cancel;
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
    const trains = (text: RegExp) => run.lines().some(({ detail }) => text.test(detail ?? ''));
    const isOver = () => run.lines().some(({ stage, status }) => stage === 'campaign' && status === 'completed');
    // Heartbeats are 2 s apart: on quiet cores the rest of a training may fall between two of them.
    await session.until(() => trains(/continues at step [1-9]/) || isOver(), 'a training that says where it continues');
    const lost = run
      .lines()
      .some(({ child, detail }) => child?.startsWith('grpo_target') && /step 0\//.test(detail ?? ''));
    if (lost) found.push('the training that was saved is shown at step 0');
    return found;
  },
};

export const cancels: Scenario[] = [cancelledTraining];
