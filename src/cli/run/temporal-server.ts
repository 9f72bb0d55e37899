/** The Temporal server of a run. Invariant: a port that somebody takes before the server binds it costs another start, not the run. */
import { namespace } from '../options';
import { chooseTemporalPorts } from '../ports';
import { connect, keepFinished, registerSearchAttributes, type Temporal } from '../temporal';
import { ServiceError } from './service';
import { temporalService } from './services';
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
  const { options, supervisor, output } = run;
  if (options.temporalAddress) {
    const at = { address: options.temporalAddress, namespace: namespace() };
    const temporal = await connect(at);
    await registerSearchAttributes(temporal, at);
    return { temporal, address: at.address, link: undefined };
  }
  const { port, uiPort } = await startOnFreePorts(run);
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

/** @throws UserError if a port that the user named is in use. */
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
      if (!(error instanceof ServiceError && error.portTaken) || starts === MAX_STARTS) throw error;
      output.note('services', "one of Temporal's ports was taken before it could listen; starting it again");
    }
  }
}
