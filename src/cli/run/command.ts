/**
 * `campaign run` and `campaign serve`: everything on this machine. Invariant: nothing is started before the checks have passed and the
 * home is ours; whatever was started is stopped before the command returns, however it ends.
 */
import { join } from 'node:path';
import { openFolderStore } from '../../artifacts/folder-store';
import type { Campaign, Stage } from '../../domain/campaign';
import { baseModelId, poolOf, servedBase } from '../../policy/base-model';
import { refuseNameOfAnalysis } from '../analyse/folder';
import { configDigests, loadCampaign, termsDigest, type CampaignOverrides } from '../campaign-file';
import { checkBridge, checkTarget } from '../checks/target';
import { checkModel, checkPolicyServer } from '../checks/base-model';
import { afterRollouts, warningsOf } from '../../checks/check';
import { checkBuild, checkHome, checkPython, checkTemporal } from '../checks/machine';
import { checkKeys, checkPartners } from '../checks/language-models';
import { requireAll, UserError } from '../errors';
import { homeOf, namespace } from '../options';
import { pythonPath } from '../project';
import { isTerminal } from '../watch/output';
import { policyServerService, workerNames, workerService } from './services';
import { readSummary } from '../reports';
import { INTERRUPTED, supervised, type ServeOptions, type SupervisedRun } from './supervisor';
import { startTemporal, type TemporalServer } from './temporal-server';
import { campaignToEnd, type CampaignRun } from './campaign';

export type RunOptions = ServeOptions &
  CampaignOverrides & {
    until?: Stage;
    /** Go on with a base model that can't work on the target. */
    force?: boolean;
    /** Do again what failed in a campaign that has completed, or this capability or arm alone. */
    retry?: string | true;
    /** Leave as soon as the campaign has ended, on a terminal as well. */
    exit?: boolean;
  };

/** A small model takes no longer. */
const HASHING_MS = 5000;

/** @returns the exit code. */
export async function runCampaign(file: string, options: RunOptions): Promise<number> {
  const campaign = loadCampaign({ file, overrides: options });
  const home = homeOf(options);
  refuseNameOfAnalysis({ home, name: campaign.name });
  const { until } = options;
  const python = await checkPython();
  const checks = [
    checkHome(home, campaign),
    checkBuild(),
    ...python,
    ...(options.temporalAddress ? [] : [await checkTemporal()]),
    await checkModel(campaign, python.every(({ ok }) => ok) ? pythonPath() : undefined),
    await checkPolicyServer(campaign),
    ...checkBridge(campaign),
    ...(await checkTarget(campaign, home, { until })),
    ...(await checkPartners(campaign)),
    ...afterRollouts(checkKeys(campaign), until),
  ];
  requireAll(checks);
  const work = async (run: SupervisedRun) => {
    for (const warning of warningsOf(checks)) run.output.note('campaign', `warning: ${warning}`);
    const store = await openFolderStore(join(home.root, 'artifacts')).id();
    const pool = campaign.workers.pool ?? (await ownPool(run, campaign, store));
    const server = await startTemporal(run, campaign.name);
    try {
      return await runToEnd({
        ...run,
        ...server,
        options,
        campaign,
        store,
        pool,
        configDigests: await configDigests({ campaign, file, until }),
        terms: termsDigest(campaign),
      });
    } finally {
      await server.temporal.close();
    }
  };
  return supervised({ options, campaign: campaign.name, work });
}

/** Of a campaign whose file names none. */
async function ownPool({ home, output, interruption }: SupervisedRun, campaign: Campaign, store: string) {
  const { path: folder } = campaign.baseModel;
  const long = setTimeout(
    () => output.note('services', `hashing ${folder}, once as long as its files stay`),
    HASHING_MS,
  );
  try {
    const model = await baseModelId({
      python: pythonPath(),
      home: home.root,
      model: folder,
      signal: interruption.signal,
    });
    return poolOf({ store, base: servedBase(model, campaign) });
  } finally {
    clearTimeout(long);
  }
}

/** The Temporal server and UI of a home, until Ctrl-C. @returns the exit code. */
export async function serveHome(options: ServeOptions): Promise<number> {
  if (options.temporalAddress)
    throw new UserError(
      `\`campaign serve\` starts the home's own Temporal; leave out --temporal-address ${options.temporalAddress}, whose server has a UI of its own`,
    );
  requireAll([checkHome(homeOf(options)), await checkTemporal()]);
  const work = async (run: SupervisedRun) => {
    const { temporal, link } = await startTemporal(run);
    await temporal.close();
    run.output.note('services', `Temporal's UI is at ${link}; Ctrl-C ends it`);
    await run.interruption.first;
    return 0;
  };
  return supervised({ options, work });
}

type Prepared = CampaignRun & SupervisedRun & TemporalServer & { options: RunOptions };

async function runToEnd(run: Prepared): Promise<number> {
  const { options, link, output, supervisor, interruption } = run;
  const ended = await campaignToEnd({ ...run, startWorkers: (pool) => startWorkers(run, pool) });
  if (!ended) return INTERRUPTED;
  // The services have nothing to do any more; Temporal stays as long as somebody looks at its UI.
  await supervisor.stop({ keep: options.temporalAddress ? 0 : 1 });
  printSummary(run);
  if (isTerminal() && !options.json && !options.exit && link) {
    output.note('services', 'Temporal and its UI stay up until Ctrl-C; `campaign serve` brings them back later');
    await interruption.first;
  }
  return 0;
}

/** Table, page and link. Where stdout is JSON lines, the table goes to stderr, unless --json says that nobody reads it. */
function printSummary({ home, options, campaign, output, link }: Prepared): void {
  const { table, report, result } = readSummary({ home, name: campaign.name });
  const places = [`report   ${report}`, ...(link ? [`workflow ${link}`] : [])];
  if (isTerminal() && !options.json) return output.note('report', ['', table, '', ...places].join('\n'));
  output.note('report', places.map((place) => place.replace(/ +/, ' ')).join(', '), { result });
  if (link) output.note('services', '`campaign serve` brings Temporal’s UI back');
  if (!options.json) process.stderr.write(`${table}\n`);
}

async function startWorkers({ home, campaign, output, supervisor, address }: Prepared, pool: string): Promise<void> {
  const { workers, policyServer, baseModel } = campaign;
  let policyServerUrl: string;
  if (policyServer.kind === 'vllm') policyServerUrl = policyServer.url;
  else {
    output.note('services', 'starting the policy server and the workers');
    const { spec, url } = policyServerService({ ...policyServer, home, model: baseModel.path });
    await supervisor.start([spec]);
    policyServerUrl = url();
  }
  const addresses = { temporalAddress: address, namespace: namespace(), policyServerUrl, pool };
  await supervisor.start(workerNames.map((name) => workerService({ name, home, addresses, workers })));
}
