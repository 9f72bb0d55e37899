/** `campaign run` and `campaign serve`: everything on this machine. Nothing is started before the checks have passed and the home is ours. */
import { once } from 'node:events';
import { join } from 'node:path';
import { runChecks, warningsOf } from '../../checks/check';
import type { Campaign } from '../../domain/campaign';
import { LAST_STAGE } from '../../domain/work';
import { poolOf, servedBase } from '../../policy/base-model';
import { comparisonText } from '../../report/comparison-text';
import { reportText } from '../../report/terminal';
import { openStore } from '../../store/open-store';
import { note } from '../../terminal';
import { baseIdOf, loadCampaign } from '../campaign-file';
import { homeCheck, temporalCheck } from '../check/machine';
import { compareReports, writeComparison } from '../report';
import { requireAll, requirements } from '../check/requirements';
import { invalidOption, UserError } from '../errors';
import { homeOf } from '../options';
import { readReport } from '../reports';
import { isTerminal } from '../watch/output';
import { builtVersion, readBundle, shortVersion } from '../../workers/versions';
import { campaignToEnd, readStart, type CampaignRun, type StartOptions } from './campaign';
import { ALLOWED_FILE } from '../../domain/allowed';
import { allowCampaign } from './allowed';
import { keepPlugins, pluginsToLoad } from './plugins';
import { policyServerService, workerServices } from './services';
import { INTERRUPTED, supervised, type ServeOptions, type SupervisedRun } from './supervisor';
import { startTemporal, type TemporalServer } from './temporal-server';

export type RunOptions = ServeOptions &
  StartOptions & {
    /** Do again what failed in a campaign that has completed, or this capability or arm alone. */
    retry?: string | true;
    /** Leave as soon as the campaign has ended, on a terminal as well. */
    exit?: boolean;
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
  const { options, link, supervisor, signal } = run;
  const ended = await campaignToEnd({
    ...run,
    startWorkers: (pool, version) => startWorkers(run, pool, version),
    onProgress: () => supervisor.noteProgress(),
  });
  if (!ended) return INTERRUPTED;
  // The services have nothing to do any more; Temporal stays as long as somebody looks at its UI.
  await supervisor.stop({ keep: options.temporalAddress ? 0 : 1 });
  printSummary(run);
  if (isTerminal() && !options.json && !options.exit && link && !signal.aborted) await once(signal, 'abort');
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

/** Table, page and link. Where stdout is JSON lines, the table goes to stderr, unless --json says that nobody reads it. */
function printSummary({ home, options, campaign: { name }, output, link }: Run): void {
  const report = readReport({ home: home.root, name });
  const page = join(home.root, name, 'report.html');
  const shown = reportText(report, { columns: process.stdout.columns, page });
  if (isTerminal() && !options.json) {
    const until = options.exit ? '' : ' (until Ctrl-C; `campaign serve` brings it back)';
    return output.note('report', ['', ...(link ? [`workflow: ${link}${until}`] : []), shown].join('\n'));
  }
  const { campaign, rollouts, base } = report;
  const result = {
    status: campaign.status,
    stage: campaign.stage,
    ...(rollouts && { rollouts }),
    ...(base && { base }),
  };
  output.note('report', `report ${page}${link ? `, workflow ${link}` : ''}`, { result });
  if (link) output.note('services', "`campaign serve` brings Temporal's UI back");
  if (!options.json) note(shown);
}

/** The Temporal server and UI of a home, until Ctrl-C. @returns the exit code. */
export async function serveHome(options: ServeOptions): Promise<number> {
  if (options.temporalAddress)
    throw new UserError(
      `\`campaign serve\` starts the home's own Temporal; leave out --temporal-address ${options.temporalAddress}, whose server has a UI of its own`,
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

type SeedsOptions = RunOptions & { trainingSeeds: number[] };

/** `campaign run`. */
export const run = (
  file: string,
  { trainingSeeds, ...options }: RunOptions & Partial<SeedsOptions>,
): Promise<number> => (trainingSeeds ? runSeeds(file, { ...options, trainingSeeds }) : runCampaign(file, options));

/**
 * One campaign with several training seeds, one run after another, and their comparison. All runs have the file's `seed`, so that base rollouts,
 * labels, selection and environments are made once and found by the others.
 * @returns the exit code: that of the first run that did not end well, or 0.
 */
export async function runSeeds(file: string, options: SeedsOptions, runOne = runCampaign): Promise<number> {
  const { trainingSeeds, recover, ...others } = options;
  const { trainingSeed: one, name, until, json } = others;
  if (one !== undefined)
    throw invalidOption('--training-seed', `${one}`, '--training-seeds names several; leave one of the options out');
  if (name !== undefined)
    throw invalidOption('--name', `"${name}"`, 'each run has its own name; set `name` in the file instead');
  const named = trainingSeeds.map(
    (trainingSeed) => loadCampaign({ file, overrides: { ...options, trainingSeed } }).name,
  );
  for (const [n, trainingSeed] of trainingSeeds.entries()) {
    // The runs share a database: after the first it is the new one.
    const code = await runOne(file, { ...others, trainingSeed, exit: true, ...(n === 0 && recover && { recover }) });
    if (code !== 0) return code;
  }
  if (until !== undefined && until !== LAST_STAGE) return 0;
  const home = homeOf(options).root;
  const comparison = await compareReports({ home, named });
  const folder = join(home, named[0] as string);
  await writeComparison(comparison, folder);
  if (!json) note(`\n${comparisonText(comparison, process.stderr.columns)}\n`);
  note(join(folder, 'comparison.html'));
  return 0;
}
