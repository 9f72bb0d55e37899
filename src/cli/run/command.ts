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
import { checkBuild, checkHome, checkTemporal, freePort } from '../checks/machine';
import { checkPartners } from '../checks/partners';
import { checkPolicyServer } from '../checks/policy-server';
import { checkPython } from '../checks/python';
import { UserError } from '../errors';
import { homeOf, namespace } from '../options';
import { campaignState, startCampaign, workflowFailure, type Temporal } from '../temporal';
import { follow } from '../watch/follow';
import { isTerminal } from '../watch/narrator';
import { decide } from './decide';
import { readEnding } from './ending';
import { policyServerService, workerNames, workerService } from './services';
import { INTERRUPTED, startTemporal, supervised, type ServeOptions, type Stand } from './stand';

export interface RunOptions extends ServeOptions, CampaignOverrides {
  until?: Stage;
  /** Leave as soon as the campaign has ended, on a terminal as well. */
  exit?: boolean;
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
    ...checkBridge(campaign),
    await checkTarget(campaign, home),
    ...(await checkPartners(campaign)),
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
  const { workers } = campaign;
  await supervisor.start(workerNames.map((name) => workerService({ name, home, addresses, workers })));
}
