/**
 * `campaign run` and `campaign serve`: everything on this machine. Invariant: nothing is started before the checks have passed and the
 * home is ours; whatever was started is stopped before the command returns, however it ends.
 */
import type { Campaign } from '../../domain/campaign';
import type { Stage } from '../../domain/stages';
import { configDigest, loadCampaign, type CampaignOverrides } from '../campaign-file';
import { checkBridge } from '../checks/bridge';
import { checkModel, checkTarget } from '../checks/campaign';
import { requireAll } from '../checks/check';
import { checkBuild, checkHome, checkTemporal } from '../checks/machine';
import { checkPartners } from '../checks/partners';
import { checkPolicyServer } from '../checks/policy-server';
import { checkPython } from '../checks/python';
import { UserError } from '../errors';
import { homeOf, namespace } from '../options';
import { campaignState, startCampaign, workflowFailure } from '../temporal';
import { follow } from '../watch/follow';
import { isTerminal } from '../watch/progress-output';
import { decide } from './decide';
import { policyServerService, workerNames, workerService } from './services';
import { readSummary } from './summary';
import { INTERRUPTED, supervised, type ServeOptions, type SupervisedRun } from './supervised-run';
import { startTemporal, type TemporalServer } from './temporal-server';

export type RunOptions = ServeOptions &
  CampaignOverrides & {
    until?: Stage;
    /** Leave as soon as the campaign has ended, on a terminal as well. */
    exit?: boolean;
  };

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
    ...checkBridge(campaign),
    ...(await checkTarget(campaign, home)),
    ...(await checkPartners(campaign)),
  ]);
  const work = async (run: SupervisedRun) => {
    const server = await startTemporal(run, campaign.name);
    try {
      return await runToEnd({ ...run, ...server, options, campaign, digest: await configDigest({ campaign, file }) });
    } finally {
      await server.temporal.close();
    }
  };
  return supervised({ options, campaign: campaign.name, work });
}

/** The Temporal server and UI of a home, until Ctrl-C. @returns the exit code. */
export async function serveHome(options: ServeOptions): Promise<number> {
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

interface CampaignRun extends SupervisedRun, TemporalServer {
  options: RunOptions;
  campaign: Campaign;
  digest: string;
}

async function runToEnd(run: CampaignRun): Promise<number> {
  const { options, campaign, temporal, digest, link, output, supervisor, interruption } = run;
  const { name } = campaign;
  const look = async () =>
    decide({ name, state: await campaignState(temporal, name), configDigest: digest, until: options.until });
  let decision = await look();
  if (decision !== 'show') await startWorkers(run);
  // One that was attached to may stop at an earlier stage than the one asked for: then it starts again and goes on from there.
  for (; decision !== 'show'; decision = await look()) {
    const verb = decision === 'start' ? 'started' : 'goes on';
    if (decision === 'start') await startCampaign(temporal, { campaign, configDigest: digest, until: options.until });
    output.note('campaign', `campaign ${name} ${verb}`);
    const end = await follow({ temporal, name, output, signal: interruption.signal });
    if (interruption.signal.aborted) return INTERRUPTED;
    if (end?.status !== 'COMPLETED')
      throw new UserError(
        `campaign ${name} ended as ${end?.status.toLowerCase() ?? 'unknown'}: ${await workflowFailure(temporal, name)}; the same command tries again from what is done`,
      );
  }
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
function printSummary({ home, options, campaign, output, link }: CampaignRun): void {
  const { table, report } = readSummary({ home, name: campaign.name });
  const places = [`report   ${report}`, ...(link ? [`workflow ${link}`] : [])];
  if (isTerminal() && !options.json) return output.note('report', ['', table, '', ...places].join('\n'));
  output.note('report', places.map((place) => place.replace(/ +/, ' ')).join(', '));
  if (link) output.note('services', '`campaign serve` brings Temporal’s UI back');
  if (!options.json) process.stderr.write(`${table}\n`);
}

async function startWorkers({ home, campaign, output, supervisor, address }: CampaignRun): Promise<void> {
  const { workers, policyServer, baseModel } = campaign;
  let policyServerUrl: string;
  if (policyServer.kind === 'vllm') policyServerUrl = policyServer.url;
  else {
    output.note('services', 'starting the policy server and the workers');
    const { spec, url } = policyServerService({ ...policyServer, model: baseModel.path });
    await supervisor.start([spec]);
    policyServerUrl = url();
  }
  const addresses = { temporalAddress: address, namespace: namespace(), policyServerUrl };
  await supervisor.start(workerNames.map((name) => workerService({ name, home, addresses, workers })));
}
