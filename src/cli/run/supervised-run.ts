/**
 * A command that supervises services: the home is locked, orphans are ended, signals are heard. Invariant: whatever was started is stopped
 * and the home is given back before the command returns, however it ends.
 */
import { homeOf, type CommonOptions } from '../options';
import type { PortOptions } from '../ports';
import type { Home } from '../project';
import { createProgressOutput, type ProgressOutput } from '../watch/progress-output';
import { onInterrupt, type Interruption } from './interrupt';
import { acquireLock } from './lock';
import { Supervisor } from './supervisor';

export type ServeOptions = CommonOptions & PortOptions;

/** Exit code of a command that Ctrl-C ended. */
export const INTERRUPTED = 130;

export interface SupervisedRun {
  home: Home;
  options: ServeOptions;
  output: ProgressOutput;
  supervisor: Supervisor;
  interruption: Interruption;
}

/** Lock, supervisor and signals around `work`; all services are stopped when it ends. `campaign` is undefined for `campaign serve`. */
export async function supervised({
  options,
  campaign,
  work,
}: {
  options: ServeOptions;
  campaign?: string;
  work: (run: SupervisedRun) => Promise<number>;
}): Promise<number> {
  const home = homeOf(options);
  const output = createProgressOutput({ json: options.json, campaign });
  const release = acquireLock(home);
  const supervisor = new Supervisor(home, ({ name, cause, log, delayMs }) =>
    output.note('services', `${name} died (${cause}); starting it again in ${delayMs / 1000} s; its log is ${log}`),
  );
  const interruption = onInterrupt({
    onFirst: () =>
      output.note('services', 'stopping: workers finish or save what they do; once more Ctrl-C ends all at once'),
    onSecond: () => supervisor.kill(),
  });
  try {
    const ended = await supervisor.endOrphans();
    if (ended.length > 0) output.note('services', `ended what an earlier run had left: ${ended.join(', ')}`);
    // An interruption stops the services: whatever the work waits for ends then, in order or with an error.
    void interruption.first.then(() => supervisor.stop());
    const working = work({ home, options, output, supervisor, interruption });
    working.catch(() => undefined);
    const code = await Promise.race([working, supervisor.failure]).catch((error: unknown) => {
      if (interruption.signal.aborted) return INTERRUPTED;
      throw error;
    });
    await supervisor.stop();
    if (code === INTERRUPTED && campaign)
      output.note('campaign', `campaign ${campaign} is not finished; the same command goes on with it`);
    return code;
  } finally {
    await supervisor.stop();
    interruption.dispose();
    release();
  }
}
