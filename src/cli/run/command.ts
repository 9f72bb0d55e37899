/**
 * `campaign run` and `campaign serve`: everything on this machine. Invariant: nothing is started before the checks have passed and the
 * home is ours; whatever was started is stopped before the command returns, however it ends.
 */
import type { Campaign } from '../../domain/campaign';
import type { Stage } from '../../domain/stages';
import { configDigest, loadCampaign, type CampaignOverrides } from '../campaign-file';
import { checkModel, checkPolicyServer, checkTarget } from '../checks/campaign';
import { requireAll, type Check } from '../checks/check';
import { checkBuild, checkHome, checkPort, checkTemporal, freePort } from '../checks/machine';
import { checkPython } from '../checks/python';
import { UserError } from '../errors';
import { homeOf, namespace, type CommonOptions } from '../options';
import type { Home } from '../project';
import {
  campaignState,
  connect,
  keepFinished,
  registerSearchAttributes,
  startCampaign,
  workflowFailure,
  type Temporal,
} from '../temporal';
import { follow } from '../watch/follow';
import { createNarrator, isTerminal, type Narrator } from '../watch/narrator';
import { decide } from './decide';
import { readEnding } from './ending';
import { onInterrupt, type Interruption } from './interrupt';
import { acquireLock } from './lock';
import { policyServerService, temporalService, workerNames, workerService } from './services';
import { Supervisor } from './supervisor';

export interface ServeOptions extends CommonOptions {
  uiPort: number;
  temporalPort: number;
}

export interface RunOptions extends ServeOptions, CampaignOverrides {
  until?: Stage;
  /** Leave as soon as the campaign has ended, on a terminal as well. */
  exit?: boolean;
}

const INTERRUPTED = 130;

interface Stand {
  home: Home;
  options: ServeOptions;
  narrator: Narrator;
  supervisor: Supervisor;
  interruption: Interruption;
}

/** @returns the exit code. */
export async function runCampaign(file: string, options: RunOptions): Promise<number> {
  const campaign = loadCampaign({ file, overrides: options });
  const home = homeOf(options);
  requireAll([
    checkHome(home),
    checkBuild(),
    ...(await checkPython()),
    ...(options.temporalAddress ? [] : [await checkTemporal()]),
    checkModel(campaign),
    await checkPolicyServer(campaign),
    await checkTarget(campaign, home),
  ]);
  return supervised(options, campaign.name, async (stand) => {
    const { temporal, link } = await startTemporal(stand, campaign.name);
    try {
      return await runToEnd({ ...stand, options, campaign, temporal, link, digest: configDigest({ campaign, file }) });
    } finally {
      await temporal.close();
    }
  });
}

/** The Temporal server and UI of a home, until Ctrl-C. @returns the exit code. */
export async function serveHome(options: ServeOptions): Promise<number> {
  requireAll([checkHome(homeOf(options)), await checkTemporal()]);
  return supervised(options, undefined, async (stand) => {
    const { temporal, link } = await startTemporal(stand);
    await temporal.close();
    stand.narrator.note('services', `Temporal's UI is at ${link}; Ctrl-C ends it`);
    await stand.interruption.first;
    return 0;
  });
}

/** Lock, supervisor and signals around `work`; all services are stopped when it ends. */
async function supervised(
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

async function startTemporal(
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

interface Run extends Stand {
  options: RunOptions;
  campaign: Campaign;
  temporal: Temporal;
  digest: string;
  link: string | undefined;
}

async function runToEnd(run: Run): Promise<number> {
  const { options, campaign, temporal, digest, link, narrator, supervisor, interruption } = run;
  const { name } = campaign;
  const look = async () =>
    decide({ name, state: await campaignState(temporal, name), configDigest: digest, until: options.until });
  let decision = await look();
  if (decision !== 'show') await startWorkers(run);
  // One that was taken up may stop at an earlier stage than the one asked for: then it starts again and goes on from there.
  for (; decision !== 'show'; decision = await look()) {
    const verb = decision === 'start' ? 'started' : 'goes on';
    if (decision === 'start') await startCampaign(temporal, { campaign, configDigest: digest, until: options.until });
    narrator.note('campaign', `campaign ${name} ${verb}`);
    const end = await follow({
      temporal,
      name,
      narrator,
      signal: interruption.signal,
    });
    if (interruption.signal.aborted) return INTERRUPTED;
    if (end?.status !== 'COMPLETED')
      throw new UserError(
        `campaign ${name} ended as ${end?.status.toLowerCase() ?? 'unknown'}: ${await workflowFailure(temporal, name)}; the same command tries again from what is done`,
      );
  }
  // The services have nothing to do any more; Temporal stays as long as somebody looks at its UI.
  await supervisor.stop({ keep: options.temporalAddress ? 0 : 1 });
  tellEnding(run);
  if (isTerminal() && !options.json && !options.exit && link) {
    narrator.note('services', 'Temporal and its UI stay up until Ctrl-C; `campaign serve` brings them back later');
    await interruption.first;
  }
  return 0;
}

/** Table, page and link. Where stdout is JSON lines, the table goes to stderr, unless --json says that nobody reads it. */
function tellEnding({ home, options, campaign, narrator, link }: Run): void {
  const { table, report } = readEnding({ home, name: campaign.name });
  const places = [`report   ${report}`, ...(link ? [`workflow ${link}`] : [])];
  if (isTerminal() && !options.json) return narrator.note('report', ['', table, '', ...places].join('\n'));
  narrator.note('report', places.map((place) => place.replace(/ +/, ' ')).join(', '));
  if (link) narrator.note('services', '`campaign serve` brings Temporal’s UI back');
  if (!options.json) process.stderr.write(`${table}\n`);
}

async function startWorkers({ home, options, campaign, narrator, supervisor }: Run): Promise<void> {
  let policyServerUrl: string;
  if (campaign.policyServer.kind === 'vllm') policyServerUrl = campaign.policyServer.url;
  else {
    const port = await freePort();
    policyServerUrl = `http://127.0.0.1:${port}`;
    narrator.note('services', 'starting the policy server and the workers');
    await supervisor.start([policyServerService({ campaign, port })]);
  }
  const addresses = {
    temporalAddress: options.temporalAddress ?? `127.0.0.1:${options.temporalPort}`,
    namespace: namespace(),
    policyServerUrl,
  };
  const { gpuSlots } = campaign.workers;
  await supervisor.start(workerNames.map((name) => workerService({ name, home, addresses, gpuSlots })));
}
