/** `campaign run` and `campaign ui`: everything on this machine. Nothing is started before the checks have passed and the home is ours. */
import { once } from 'node:events';
import { join } from 'node:path';
import { runChecks, warningsOf } from '../../checks/check';
import type { Campaign } from '../../domain/campaign';
import { poolOf, servedBase } from '../../policy/base-model';
import { reportText } from '../../report/terminal';
import { openStore } from '../../store/open-store';
import { columnsOf, print } from '../../terminal';
import { baseIdOf } from '../campaign-file';
import { homeCheck, temporalCheck } from '../check/machine';
import { requireAll, requirements } from '../check/requirements';
import { invalidOption, UserError } from '../errors';
import { homeOf } from '../options';
import { pythonPath } from '../project';
import { readReport } from '../reports';
import { builtVersion, readBundle, shortVersion } from '../../workers/versions';
import { campaignToEnd, readCampaign, startDetached, startOf, type CampaignRun, type StartOptions } from './campaign';
import { ALLOWED_FILE } from '../../domain/allowed';
import { allowCampaign, pluginsToLoad } from '../services/allowed';
import { policyServerService, workerServices } from '../services/services';
import { askHub, baseFolder, isToDownload } from '../../policy/hub';
import { INTERRUPTED, supervised, type SupervisedOptions, type SupervisedRun } from '../services/supervisor';
import { startTemporal, type TemporalServer } from '../services/temporal-server';

export type RunOptions = SupervisedOptions &
  StartOptions & {
    /** Start the campaign and leave. */
    detach?: boolean;
  };

/** A small model takes no longer. */
const HASHING_MS = 5000;

/** `campaign run`. @returns the exit code. */
export async function run(file: string, { detach, ...options }: RunOptions): Promise<number> {
  if (detach) {
    await startDetached(file, options);
    return 0;
  }
  const home = homeOf(options);
  const campaign = readCampaign(file, options);
  const { until } = options;
  const cluster = options.temporalAddress !== undefined;
  const checks = await runChecks(requirements({ home, campaign, until, cluster }), { until });
  requireAll(checks);
  const isToLoad = isToDownload(campaign.baseModel);
  const work = async (supervisedRun: SupervisedRun) => {
    for (const warning of warningsOf(checks)) supervisedRun.output.note('campaign', `warning: ${warning}`);
    if (isToLoad) await download(supervisedRun, campaign, cluster);
    const base = await baseOf(supervisedRun, campaign);
    const start = await startOf({ campaign, home, base, options });
    const pool = campaign.workers.pool ?? poolOf({ store: start.store, base: servedBase(base, campaign) });
    const server = await startTemporal(supervisedRun, campaign.name);
    try {
      return await runToEnd({ ...supervisedRun, ...server, ...start, options, pool });
    } finally {
      await server.temporal.close();
    }
  };
  return supervised({ options, campaign: campaign.name, work });
}

/** Downloads the base model; then what `run` checks of it. @throws InputError */
async function download({ home, output, signal }: SupervisedRun, campaign: Campaign, cluster: boolean): Promise<void> {
  const { baseModel } = campaign;
  let shown = -1;
  const onProgress = (done: number, total: number) => {
    const tenth = Math.floor((10 * done) / total);
    if (tenth > shown)
      output.note('services', `downloading ${baseModel.hub}: ${megabytes(done)} of ${megabytes(total)}`);
    shown = Math.max(shown, tenth);
  };
  await askHub({ baseModel, download: true, python: pythonPath(), signal, onProgress });
  requireAll(await runChecks(requirements({ home, campaign, cluster })));
}

const megabytes = (bytes: number): string => `${Math.ceil(bytes / 1e6)} MB`;

async function baseOf({ home, output, signal }: SupervisedRun, campaign: Campaign): Promise<string> {
  const hashing = `hashing ${baseFolder(campaign.baseModel)}, once as long as its files stay`;
  const long = setTimeout(() => output.note('services', hashing), HASHING_MS);
  try {
    return await baseIdOf(campaign, home, signal);
  } finally {
    clearTimeout(long);
  }
}

type Run = CampaignRun & SupervisedRun & TemporalServer & { options: RunOptions };

async function runToEnd(run: Run): Promise<number> {
  const { supervisor } = run;
  const ended = await campaignToEnd({
    ...run,
    startWorkers: (begunOn) => startWorkers(run, begunOn),
  });
  if (!ended) return INTERRUPTED;
  await supervisor.stop();
  printSummary(run);
  return 0;
}

/** `begunOn`: the version of workflow code of a campaign that runs. */
async function startWorkers(run: Run, begunOn?: string): Promise<void> {
  const { home, campaign, output, supervisor } = run;
  const { policyServer, baseModel, training } = campaign;
  const version = await builtVersion();
  const isOlder = begunOn !== undefined && begunOn !== version;
  if (isOlder && (await readBundle((await openStore(home.root)).files, begunOn)) === undefined)
    throw new UserError(
      'not_found',
      'workflow code',
      `campaign ${campaign.name} began on version ${shortVersion(begunOn)} of the workflow code, which is missing or damaged in the store; with --restart it starts again on version ${shortVersion(version)}, from what is done`,
    );
  await allowCampaign(run);
  const plugins = pluginsToLoad(home, campaign, (text) => output.note('services', text));
  // Programs that this process starts do not get the key variables that the file names.
  process.env[ALLOWED_FILE] = home.allowed;
  let policyServerUrl: string;
  if (policyServer.kind === 'vllm') policyServerUrl = policyServer.url;
  else {
    output.note('services', 'starting the policy server and the workers');
    const { spec, url } = policyServerService({
      ...policyServer,
      dtype: training.dtype,
      home,
      model: baseFolder(baseModel),
    });
    await supervisor.start([spec]);
    policyServerUrl = url();
  }
  await supervisor.start(workerServices({ ...run, policyServerUrl, plugins }));
  const older = isOlder
    ? `; campaign ${campaign.name} continues on ${shortVersion(begunOn)}, with --restart it starts again`
    : '';
  output.note('services', `new campaigns begin on version ${shortVersion(version)} of the workflow code${older}`);
}

/** Prints the report's summary; with --json its figures. */
function printSummary({ home, options, campaign: { name }, output, link }: Run): void {
  const report = readReport({ home: home.root, name });
  const page = join(home.root, name, 'report.html');
  if (options.json) {
    const { campaign, rollouts, base } = report;
    const { status, stage } = campaign;
    const result = { status, stage, ...(rollouts && { rollouts }), ...(base && { base }) };
    return output.note('report', `report ${page}${link ? `, workflow ${link}` : ''}`, { result });
  }
  print(`\n${reportText(report, { columns: columnsOf(), page })}`);
}

/** `campaign ui`: the Temporal server and UI of a home, until Ctrl-C. @returns the exit code. */
export async function serveUi(options: SupervisedOptions): Promise<number> {
  if (options.temporalAddress)
    throw invalidOption(
      '--temporal-address',
      options.temporalAddress,
      "leave it out: `campaign ui` starts the home's own Temporal, and that server has a UI of its own",
    );
  requireAll(await runChecks([homeCheck(homeOf(options)), temporalCheck()]));
  const work = async (run: SupervisedRun) => {
    const { temporal, link } = await startTemporal(run);
    await temporal.close();
    run.output.note('services', `Temporal's UI is at ${link}; Ctrl-C ends it`);
    if (!run.signal.aborted) await once(run.signal, 'abort');
    return 0;
  };
  return supervised({ options, work });
}
