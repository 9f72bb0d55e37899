/**
 * The Temporal server of a run. Invariants: a port that somebody takes before the server binds it costs another start, not the run; a
 * damaged database ends the run with the remedy, never in waiting without end.
 */
import { join } from 'node:path';
import { UserError } from '../errors';
import { namespace } from '../options';
import { chooseTemporalPorts } from '../ports';
import { connect, keepFinished, registerSearchAttributes, type Temporal } from '../temporal';
import { damagedDatabase, damageIn, moveAside, watchDatabase } from './database';
import { logPath, logSize } from './log-file';
import { ServiceError } from './service';
import { TEMPORAL, temporalService } from './services';
import type { SupervisedRun } from './supervised-run';

const MAX_STARTS = 5;

export interface TemporalServer {
  temporal: Temporal;
  /** Host and port, for workers. */
  address: string;
  /** Where the UI shows the campaign; undefined for a cluster. */
  link: string | undefined;
}

/** Starts the home's Temporal server, or connects to the cluster that is named. */
export async function startTemporal(run: SupervisedRun, campaign?: string): Promise<TemporalServer> {
  const { home, options, supervisor, output, interruption } = run;
  if (options.temporalAddress) {
    if (options.recover)
      throw new UserError(
        `--recover is about the database of the server that a run starts itself; leave it out with --temporal-address ${options.temporalAddress}`,
      );
    const at = { address: options.temporalAddress, namespace: namespace() };
    const temporal = await connect(at);
    await registerSearchAttributes(temporal, at);
    return { temporal, address: at.address, link: undefined };
  }
  if (options.recover) recover(run);
  const log = { path: logPath(home.logs, TEMPORAL), start: logSize(home.logs, TEMPORAL) };
  const { port, uiPort } = await startOnFreePorts(run);
  watchDatabase({ home, log, signal: interruption.signal, onDamage: (error) => supervisor.fail(error) });
  const at = { address: `127.0.0.1:${port}`, namespace: namespace() };
  const uiUrl = `http://localhost:${uiPort}`;
  supervisor.announce({ temporalAddress: at.address, uiUrl });
  const temporal = await connect(at);
  await keepFinished(temporal, at.namespace);
  const path = campaign ? `/${encodeURIComponent(campaign)}` : '';
  const link = `${uiUrl}/namespaces/${at.namespace}/workflows${path}`;
  output.link = link;
  output.note('services', `Temporal is up at ${at.address}: ${link}`);
  return { temporal, address: at.address, link };
}

function recover({ home, output }: SupervisedRun): void {
  const aside = moveAside(home);
  output.note(
    'services',
    aside
      ? `Temporal's old database is now ${aside}; what is finished is found again in ${join(home.root, 'artifacts')}`
      : `${home.temporalDatabase} is not there: there is nothing to move aside`,
  );
}

/** @throws UserError if a port that the user named is in use, or if the database is damaged. */
export async function startOnFreePorts({
  home,
  options,
  supervisor,
  output,
}: Pick<SupervisedRun, 'home' | 'options' | 'supervisor' | 'output'>): Promise<{ port: number; uiPort: number }> {
  for (let starts = 1; ; starts++) {
    const ports = await chooseTemporalPorts({ options, note: (text) => output.note('services', text) });
    try {
      await supervisor.start([temporalService({ home, namespace: namespace(), ...ports })]);
      return ports;
    } catch (error) {
      const damaged = error instanceof ServiceError ? damageIn(error.evidence) : undefined;
      if (damaged !== undefined) throw damagedDatabase(home, damaged, (error as ServiceError).evidence);
      if (!(error instanceof ServiceError && error.portTaken) || starts === MAX_STARTS) throw error;
      output.note('services', "one of Temporal's ports was taken before it could listen; starting it again");
    }
  }
}
