/**
 * Where a command stands that supervises services: the home is locked, leftovers are ended, signals are heard. Invariant: whatever was
 * started is stopped and the home is given back before the command returns, however it ends.
 */
import { checkPort } from '../checks/machine';
import { requireAll, type Check } from '../checks/check';
import { homeOf, namespace, type CommonOptions } from '../options';
import type { Home } from '../project';
import { connect, keepFinished, registerSearchAttributes, type Temporal } from '../temporal';
import { createNarrator, type Narrator } from '../watch/narrator';
import { onInterrupt, type Interruption } from './interrupt';
import { acquireLock } from './lock';
import { temporalService } from './services';
import { Supervisor } from './supervisor';

export interface ServeOptions extends CommonOptions {
  uiPort: number;
  temporalPort: number;
}

/** Exit code of a command that Ctrl-C ended. */
export const INTERRUPTED = 130;

export interface Stand {
  home: Home;
  options: ServeOptions;
  narrator: Narrator;
  supervisor: Supervisor;
  interruption: Interruption;
}

/** Lock, supervisor and signals around `work`; all services are stopped when it ends. */
export async function supervised(
  options: ServeOptions,
  campaign: string | undefined,
  work: (stand: Stand) => Promise<number>,
): Promise<number> {
  const home = homeOf(options);
  const narrator = createNarrator({ json: options.json, campaign });
  const release = acquireLock(home);
  const supervisor = new Supervisor(home, ({ name, cause, log, delayMs }) =>
    narrator.note('services', `${name} died (${cause}); starting it again in ${delayMs / 1000} s; its log is ${log}`),
  );
  const interruption = onInterrupt({
    onFirst: () =>
      narrator.note('services', 'stopping: workers finish or save what they do; once more Ctrl-C ends all at once'),
    onSecond: () => supervisor.kill(),
  });
  try {
    const ended = await supervisor.endOrphans();
    if (ended.length > 0) narrator.note('services', `ended what an earlier run had left: ${ended.join(', ')}`);
    // An interruption stops the services: whatever the work waits for ends then, in order or with an error.
    void interruption.first.then(() => supervisor.stop());
    const working = work({ home, options, narrator, supervisor, interruption });
    working.catch(() => undefined);
    const code = await Promise.race([working, supervisor.failure]).catch((error: unknown) => {
      if (interruption.signal.aborted) return INTERRUPTED;
      throw error;
    });
    await supervisor.stop();
    if (code === INTERRUPTED && campaign)
      narrator.note('campaign', `campaign ${campaign} is not finished; the same command goes on with it`);
    return code;
  } finally {
    await supervisor.stop();
    interruption.dispose();
    release();
  }
}

/** Starts the home's Temporal server, or connects to the cluster that is named. `link` is where the UI shows the campaign. */
export async function startTemporal(
  { home, options, supervisor, narrator }: Stand,
  campaign?: string,
): Promise<{ temporal: Temporal; link: string | undefined }> {
  const at = { address: options.temporalAddress ?? `127.0.0.1:${options.temporalPort}`, namespace: namespace() };
  if (options.temporalAddress) {
    const temporal = await connect(at);
    await registerSearchAttributes(temporal, at);
    return { temporal, link: undefined };
  }
  requireAll(await freePorts(options));
  await supervisor.start([temporalService({ home, port: options.temporalPort, uiPort: options.uiPort })]);
  const uiUrl = `http://localhost:${options.uiPort}`;
  supervisor.announce({ temporalAddress: at.address, uiUrl });
  const temporal = await connect(at);
  await keepFinished(temporal, at.namespace);
  const path = campaign ? `/${encodeURIComponent(campaign)}` : '';
  const link = `${uiUrl}/namespaces/${at.namespace}/workflows${path}`;
  narrator.link = link;
  narrator.note('services', `Temporal is up: ${link}`);
  return { temporal, link };
}

const freePorts = ({ temporalPort, uiPort }: ServeOptions): Promise<Check[]> =>
  Promise.all([
    checkPort({ name: 'Temporal server', port: temporalPort, flag: '--temporal-port' }),
    checkPort({ name: 'Temporal UI', port: uiPort, flag: '--ui-port' }),
  ]);
