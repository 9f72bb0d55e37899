/**
 * A command that supervises services: the home is locked, orphans are ended, signals are heard. Invariant: whatever was started is stopped
 * and the home is given back before the command returns, however it ends.
 */
import { join } from 'node:path';
import { removeLeftovers } from '../../artifacts/folder-store';
import { homeOf, type CommonOptions } from '../options';
import type { PortOptions } from '../ports';
import { makeHome, type Home } from '../project';
import { createProgressOutput, type ProgressOutput } from '../watch/progress-output';
import { HomeDisk } from './full-disk';
import { onInterrupt, type Interruption } from './interrupt';
import { acquireLock } from './lock';
import type { ServiceHooks } from './service';
import { Supervisor } from './supervisor';

export type ServeOptions = CommonOptions &
  PortOptions & {
    /** Begin with a new Temporal database; the old one is moved aside. */
    recover?: boolean;
  };

/** Exit code of a command that Ctrl-C ended. */
export const INTERRUPTED = 130;

export interface SupervisedRun {
  home: Home;
  options: ServeOptions;
  output: ProgressOutput;
  supervisor: Supervisor;
  disk: HomeDisk;
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
  await makeHome(home.root);
  const release = acquireLock(home);
  const disk = new HomeDisk(home.root, (text) => output.note('services', text));
  const onRestart: ServiceHooks['onRestart'] = ({ name, cause, log, delayMs }) =>
    output.note('services', `${name} died (${cause}); starting it again in ${delayMs / 1000} s; its log is ${log}`);
  const supervisor = new Supervisor({ home, disk, onRestart });
  const interruption = onInterrupt({
    onFirst: () =>
      output.note('services', 'stopping: workers finish or save what they do; once more Ctrl-C ends all at once'),
    onSecond: () => supervisor.kill(),
  });
  try {
    const ended = await supervisor.endOrphans();
    if (ended.length > 0) output.note('services', `ended what an earlier run had left: ${ended.join(', ')}`);
    const removed = await removeLeftovers(join(home.root, 'artifacts'));
    if (removed > 0) output.note('services', `removed ${removed} unfinished files of killed processes`);
    // An interruption stops the services: whatever the work waits for ends then, in order or with an error.
    void interruption.first.then(() => supervisor.stop());
    const working = work({ home, options, output, supervisor, disk, interruption });
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
    // After a failure the work still waits for services that are gone.
    interruption.abort();
    interruption.dispose();
    release();
  }
}
