/**
 * The Temporal server of a home and its database. A database whose first start was interrupted is created again; a damaged one ends the run with an error
 * that shows the command to move it.
 */
import { existsSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { splitVariables } from '../../domain/secrets';
import { clusterAt, ownServerVariables } from '../../temporal/connection';
import { searchAttributes } from '../../workflows/messages';
import { UserError } from '../errors';
import { namespace } from '../options';
import { chooseTemporalPorts, freePorts } from '../ports';
import { temporalPath, type Home } from '../project';
import { connect, keepFinished, placeLines, registerSearchAttributes, type Temporal } from '../temporal';
import { announce } from './processes';
import { fileSize, logPath, logTail, type ServiceSpec } from './service';
import { answersOk } from './services';
import type { SupervisedRun } from './supervisor';

const LOOK_MS = 2000;

/** SQLite's files beside the database itself: the log of writes, its index, the journal of a first start. */
const suffixes = ['', '-wal', '-shm', '-journal'];
/** SQLite's errors for another file, a flipped page, missing pages and an empty file. */
const damage =
  /file is not a database|database disk image is malformed|malformed database schema|no such (?:table|column): \w+|disk I\/O error[^"]*\(522\)/;

/** Exists while the server makes its tables: if it is killed meanwhile, it can't start with them again. */
const marker = ({ temporalDatabase }: Home): string => `${temporalDatabase}.new`;

/** Called before every start of the server. */
function prepareDatabase(home: Home): void {
  if (existsSync(marker(home))) for (const suffix of suffixes) rmSync(home.temporalDatabase + suffix, { force: true });
  if (!existsSync(home.temporalDatabase)) writeFileSync(marker(home), '');
}

/** Called when the server answers: its tables are there. */
const databaseIsMade = (home: Home): void => rmSync(marker(home), { force: true });

/** Returns the error with its fix if lines of the server's log report damage. */
function damageIn({ temporalDatabase, root }: Home, lines: readonly string[]): UserError | undefined {
  const [what] = lines.flatMap((line) => damage.exec(line)?.[0] ?? []);
  if (what === undefined) return undefined;
  const fix = `move it away with \`mv ${temporalDatabase} ${temporalDatabase}.damaged && rm -f ${temporalDatabase}-*\` and give the same command again: finished results are found in ${join(root, 'artifacts')}, the history in Temporal's UI is lost`;
  return new UserError(
    'damaged',
    'temporal.db',
    `Temporal's database ${temporalDatabase} is damaged (${what}); ${fix}`,
    lines.slice(-3),
  );
}

/**
 * Watches the server's log from byte `start` on, until `signal`. With a damaged page the server starts and runs, but a workflow that needs the page
 * waits for ever. `onDamage` is called once.
 */
function watchDatabase(o: {
  home: Home;
  start: number;
  signal: AbortSignal;
  onDamage: (error: UserError) => void;
}): void {
  const path = logPath(o.home.logs, TEMPORAL);
  const timer = setInterval(() => {
    // A rotated log begins again.
    const start = fileSize(path) < o.start ? 0 : o.start;
    const damaged = damageIn(o.home, logTail({ path, start, lines: 200 }));
    if (!damaged) return;
    clearInterval(timer);
    o.onDamage(damaged);
  }, LOOK_MS).unref();
  o.signal.addEventListener('abort', () => clearInterval(timer));
}

export const TEMPORAL = 'temporal';

/** Shell script that runs a program and kills it when stdin ends, because the dev server does not notice the death of its supervisor. */
const WITH_PARENT = 'exec 3<&0; (cat <&3; kill -9 $$) >/dev/null 2>&1 & exec "$@" </dev/null 3<&-';

/** Temporal's dev server with a database in the home. */
function temporalService(home: Home, { port, uiPort }: { port: number; uiPort: number }): ServiceSpec {
  let httpPort = 0;
  return {
    name: TEMPORAL,
    command: 'sh',
    args: async () => {
      prepareDatabase(home);
      // Left to itself, it draws these two at random, and may draw one that it was given for something else.
      const [http = 0, metrics = 0] = await freePorts({ count: 2, except: [port, uiPort] });
      httpPort = http;
      return [
        ...['-c', WITH_PARENT, 'sh', temporalPath() ?? 'temporal', 'server', 'start-dev', '--ip', '127.0.0.1'],
        ...['--log-level', 'warn', '--namespace', namespace()],
        ...['--port', String(port), '--ui-port', String(uiPort), '--http-port', String(http)],
        ...['--metrics-port', String(metrics), '--db-filename', home.temporalDatabase],
        ...Object.values(searchAttributes).flatMap(({ name }) => ['--search-attribute', `${name}=Keyword`]),
        // Write-ahead logging makes it four times as fast on activities.
        ...['journal_mode=WAL', 'synchronous=1'].flatMap((pragma) => ['--sqlite-pragma', pragma]),
        // A queue with the default four partitions can leave a task waiting for minutes (10 were seen) while its worker polls another partition.
        ...['Read', 'Write'].flatMap((kind) => ['--dynamic-config-value', `matching.numTaskqueue${kind}Partitions=1`]),
        // Campaigns take turns.
        ...['--dynamic-config-value', 'matching.enableFairness=true'],
      ];
    },
    env: { ...splitVariables(process.env).env, ...ownServerVariables() },
    // The HTTP port was chosen by this process: on the gRPC port another user's server may answer.
    isReady: async () => {
      const url = `http://127.0.0.1:${httpPort}/api/v1/namespaces/${encodeURIComponent(namespace())}`;
      const ready = await answersOk(url);
      if (ready) databaseIsMade(home);
      return ready;
    },
    readySeconds: 60,
    graceSeconds: 10,
  };
}

export interface TemporalServer {
  temporal: Temporal;
  /** For workers: where it is. */
  variables: NodeJS.ProcessEnv;
  /** Address of the campaign in the UI; undefined for a cluster. */
  link: string | undefined;
}

/** Starts the home's Temporal server, or connects to the cluster that is named. */
export async function startTemporal(run: SupervisedRun, campaign?: string): Promise<TemporalServer> {
  const { home, options, supervisor, output, signal } = run;
  const cluster = options.temporalAddress;
  if (cluster) {
    const at = clusterAt(cluster);
    const temporal = await connect(at, home);
    await registerSearchAttributes(temporal, at, (text) => output.note('services', text));
    for (const line of placeLines(at, campaign)) output.note('services', line);
    return { temporal, variables: { TEMPORAL_ADDRESS: at.address }, link: undefined };
  }
  const start = fileSize(logPath(home.logs, TEMPORAL));
  const ports = await chooseTemporalPorts(options.uiPort);
  await supervisor.start([temporalService(home, ports)]).catch((error: unknown) => {
    throw (error instanceof UserError && damageIn(home, error.evidence)) || error;
  });
  watchDatabase({ home, start, signal, onDamage: supervisor.fail });
  const at = { address: `127.0.0.1:${ports.port}`, namespace: namespace() };
  const ui = `http://localhost:${ports.uiPort}`;
  announce(home, { temporalAddress: at.address, ui });
  const temporal = await connect(at, home);
  await keepFinished(temporal, at.namespace);
  const workflow = campaign ? `/${encodeURIComponent(campaign)}` : '';
  const link = `${ui}/namespaces/${at.namespace}/workflows${workflow}`;
  output.note('services', `Temporal is up at ${at.address}: ${link}`);
  return { temporal, variables: ownServerVariables(at), link };
}
