/** `campaign run` and `campaign ui`: everything on this machine. Nothing is started before the checks have passed and the home is ours. */
import { once } from 'node:events';
import { join } from 'node:path';
import { runChecks, warningsOf } from '../../checks/check';
import type { Campaign } from '../../domain/campaign';
import { LAST_STAGE } from '../../domain/work';
import { poolOf, servedBase } from '../../policy/base-model';
import { comparisonText } from '../../report/comparison-text';
import { reportText } from '../../report/terminal';
import { openStore } from '../../store/open-store';
import { note, print } from '../../terminal';
import { baseIdOf, loadCampaign } from '../campaign-file';
import { homeCheck, temporalCheck } from '../check/machine';
import { compareReports, writeComparison } from '../report';
import { requireAll, requirements } from '../check/requirements';
import { invalidOption, UserError } from '../errors';
import { homeOf } from '../options';
import { readReport } from '../reports';
import { builtVersion, readBundle, shortVersion } from '../../workers/versions';
import { campaignToEnd, readStart, startDetached, type CampaignRun, type StartOptions } from './campaign';
import { ALLOWED_FILE } from '../../domain/allowed';
import { allowCampaign } from './allowed';
import { keepPlugins, pluginsToLoad } from './plugins';
import { policyServerService, workerServices } from './services';
import { INTERRUPTED, supervised, type SupervisedOptions, type SupervisedRun } from './supervisor';
import { startTemporal, type TemporalServer } from './temporal-server';

export type RunOptions = SupervisedOptions &
  StartOptions & {
    /** Retry what failed in a campaign that has completed, or this capability or baseline alone. */
    retry?: string | true;
  };

/** A small model takes no longer. */
const HASHING_MS = 5000;

/** @returns the exit code. */
export async function runCampaign(file: string, options: RunOptions): Promise<number> {
  const home = homeOf(options);
  const { campaign, ...start } = await readStart({ file, home, options });
  const { until } = options;
  const cluster = options.temporalAddress !== undefined;
  const checks = await runChecks(requirements({ home, campaign, until, cluster }), { until });
  requireAll(checks);
  const work = async (supervisedRun: SupervisedRun) => {
    for (const warning of warningsOf(checks)) supervisedRun.output.note('campaign', `warning: ${warning}`);
    const store = await start.store();
    const base = await baseOf(supervisedRun, campaign);
    const pool = campaign.workers.pool ?? poolOf({ store, base: servedBase(base, campaign) });
    const server = await startTemporal(supervisedRun, campaign.name);
    try {
      return await runToEnd({ ...supervisedRun, ...server, ...start, options, campaign, store, base, pool });
    } finally {
      await server.temporal.close();
    }
  };
  return supervised({ options, campaign: campaign.name, work });
}

async function baseOf({ home, output, signal }: SupervisedRun, campaign: Campaign): Promise<string> {
  const hashing = `hashing ${campaign.baseModel.path}, once as long as its files stay`;
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
    startWorkers: (pool, version) => startWorkers(run, pool, version),
    onProgress: () => supervisor.noteProgress(),
  });
  if (!ended) return INTERRUPTED;
  await supervisor.stop();
  printSummary(run);
  return 0;
}

/** `begunOn`: the version of workflow code of a campaign that runs. */
async function startWorkers(run: Run, pool: string, begunOn?: string): Promise<void> {
  const { home, campaign, output, supervisor, variables } = run;
  const { policyServer, baseModel } = campaign;
  const version = await builtVersion();
  const isOlder = begunOn !== undefined && begunOn !== version;
  if (isOlder && (await readBundle((await openStore(home.root)).files, begunOn)) === undefined)
    throw new UserError(
      `campaign ${campaign.name} began on version ${shortVersion(begunOn)} of the workflow code, which is missing or damaged in the store; with --restart it starts again on version ${shortVersion(version)}, from what is done`,
    );
  await allowCampaign(run);
  await keepPlugins(home, campaign);
  const plugins = pluginsToLoad(home, campaign, (text) => output.note('services', text));
  // No program of this process is started with what it names.
  process.env[ALLOWED_FILE] = home.allowed;
  let policyServerUrl: string;
  if (policyServer.kind === 'vllm') policyServerUrl = policyServer.url;
  else {
    output.note('services', 'starting the policy server and the workers');
    const { spec, url } = policyServerService({ ...policyServer, home, model: baseModel.path });
    await supervisor.start([spec]);
    policyServerUrl = url();
  }
  await supervisor.start(workerServices({ home, variables, policyServerUrl, pool, campaign, plugins }));
  const older = isOlder
    ? `; campaign ${campaign.name} continues on ${shortVersion(begunOn)}, with --restart it starts again`
    : '';
  output.note('services', `new campaigns begin on version ${shortVersion(version)} of the workflow code${older}`);
}

/** Prints the report's summary; with --json its figures. */
function printSummary({ home, options, campaign: { name }, output, link }: Run): void {
  const report = readReport({ home: home.root, name });
  const page = join(home.root, name, 'report.html');
  if (link) output.note('services', `Temporal's UI ends with this command; \`campaign ui\` starts it again`);
  if (options.json) {
    const { campaign, rollouts, base } = report;
    const { status, stage } = campaign;
    const result = { status, stage, ...(rollouts && { rollouts }), ...(base && { base }) };
    return output.note('report', `report ${page}${link ? `, workflow ${link}` : ''}`, { result });
  }
  print(`\n${reportText(report, { columns: process.stdout.columns, page })}`);
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

/** `campaign run`. @returns the exit code. */
export async function run(
  file: string,
  {
    trainingSeed: seeds = [],
    detach,
    ...options
  }: Omit<RunOptions, 'trainingSeed'> & { trainingSeed?: number[]; detach?: boolean },
): Promise<number> {
  const [trainingSeed] = seeds;
  if (seeds.length > 1 && !detach) return runSeeds(file, { ...options, trainingSeeds: seeds });
  const one = { ...options, ...(trainingSeed !== undefined && { trainingSeed }) };
  if (!detach) return runCampaign(file, one);
  if (seeds.length > 1)
    throw invalidOption('--training-seed', seeds.join(','), '--detach starts one campaign: name one seed');
  await startDetached(file, one);
  return 0;
}

/**
 * One campaign with several training seeds, one run after another, and their comparison. All runs have the file's `seed`, so that base rollouts,
 * labels, selection and environments are made once and found by the others.
 * @returns the exit code: that of the first run that did not end well, or 0.
 */
export async function runSeeds(
  file: string,
  { trainingSeeds, ...options }: Omit<RunOptions, 'trainingSeed'> & { trainingSeeds: readonly number[] },
  runOne = runCampaign,
): Promise<number> {
  const { name, until, json } = options;
  if (name !== undefined)
    throw invalidOption('--name', `"${name}"`, 'each run has its own name; set `name` in the file instead');
  const named = trainingSeeds.map(
    (trainingSeed) => loadCampaign({ file, overrides: { ...options, trainingSeed } }).name,
  );
  for (const trainingSeed of trainingSeeds) {
    const code = await runOne(file, { ...options, trainingSeed });
    if (code !== 0) return code;
  }
  if (until !== undefined && until !== LAST_STAGE) return 0;
  const home = homeOf(options).root;
  const comparison = await compareReports({ home, named });
  const folder = join(home, named[0] as string);
  await writeComparison(comparison, folder);
  if (!json) print(`\n${comparisonText(comparison, process.stdout.columns)}\n`);
  note(join(folder, 'comparison.html'));
  return 0;
}
