/**
 * Runs a campaign from its present state to its end: decides by its state in Temporal whether to start, follow or refuse it. A damaged artifact or a lost
 * report starts the workflow again, which rebuilds it, a few times. Anything else that ends the campaign is an error that names the reason.
 */
import { openStore } from '../../store/open-store';
import type { Campaign, Stage } from '../../domain/campaign';
import { kindOf } from '../../domain/kinds';
import { taskQueues } from '../../domain/work';
import { withPlugins } from '../../plugins';
import { note, print } from '../../terminal';
import { refuseNameOfAnalysis } from '../analyse/folder';
import {
  baseIdOf,
  type CampaignOverrides,
  configDigest,
  loadCampaign,
  termsDigest,
  travelling,
} from '../campaign-file';
import { UserError } from '../errors';
import { type CommonOptions, homeOf, requireYes } from '../options';
import { type Home, makeHome } from '../project';
import { lostReport } from '../reports';
import { type CampaignState, campaignState, type Digests, inputOf, ofAnotherHome, startCampaign } from '../control';
import { addressOf, connect, hasWorkers, placeLines, registerSearchAttributes, type Temporal } from '../temporal';
import { follow } from '../campaign-status';
import { readStatus, type Snapshot, writeStatus } from '../watch/snapshot';
import { type CampaignResult, workflowIds } from '../../workflows/messages';
import { allowCampaign } from '../services/allowed';
import { changedFieldsText } from './changed-fields';
import type { SupervisedRun } from '../services/supervisor';

export interface StartOptions extends CampaignOverrides {
  until?: Stage;
  /** Continue with a base model that can't work on the target. */
  force?: boolean;
  /** Terminate it if it runs, so that it starts again with the current code. */
  restart?: boolean;
  /** Retry what failed in a campaign that has completed. */
  retry?: boolean;
}

/** A campaign as a command would start it. */
export interface Start extends Digests {
  campaign: Campaign;
  name: string;
  /** The id of the home's store. */
  store: string;
  /** The id of its base model. */
  base: string;
  until?: Stage | undefined;
  force?: boolean | undefined;
  /** Returns the campaign as sent to workers; puts files that it names into the store again if they are missing. */
  sent: () => Promise<Campaign>;
}

/** Reads a campaign file before anything is started. @throws UserError also if an analysis has its name. */
export function readCampaign(file: string, options: StartOptions & CommonOptions): Campaign {
  const campaign = loadCampaign({ file, overrides: options });
  refuseNameOfAnalysis({ home: homeOf(options), name: campaign.name });
  return campaign;
}

/** Returns what a campaign is started with. The home's store is made if there is none. */
export async function startOf(o: {
  campaign: Campaign;
  home: Home;
  base: string;
  options: StartOptions;
}): Promise<Start> {
  const { campaign, home, base } = o;
  const { until, force } = o.options;
  const { environments } = withPlugins(campaign.plugins);
  const sent = () => travelling({ campaign, home, base, until });
  return {
    ...{ campaign, name: campaign.name, base, until, force, sent },
    store: await (await openStore(home.root)).id(),
    configDigest: configDigest(await sent()),
    terms: termsDigest(campaign),
    // Errors of reading are reported by the checks of the target.
    contents: await kindOf(environments, campaign.target)
      .contents?.(campaign.target)
      .catch(() => undefined),
  };
}

export type Decision = 'start' | 'attach' | 'show';

/**
 * A running campaign is attached to; a finished one is shown; one that failed, was ended, stopped after another stage or may now spend more
 * starts again, and finds its artifacts. One that runs or is complete is refused under another configuration.
 * @throws UserError if the name belongs to another home, or files of a finished campaign's target have changed.
 */
export function decide(
  state: CampaignState | undefined,
  o: Omit<Start, 'campaign' | 'base' | 'sent'>,
): Decision | 'refuse' {
  const { name, store, configDigest, terms, contents, until } = o;
  if (!state) return 'start';
  const { status } = state;
  if (state.taskQueue !== taskQueues.control(store)) throw ofAnotherHome(name, state);
  const isOther = state.configDigest !== configDigest;
  if (isOther && (status === 'RUNNING' || (status === 'COMPLETED' && state.until === undefined))) return 'refuse';
  if (status === 'RUNNING') return 'attach';
  if (isOther || status !== 'COMPLETED' || state.until !== until || state.terms !== terms) return 'start';
  if (state.contents !== undefined && state.contents !== contents)
    throw new UserError(
      'name_taken',
      'name',
      `campaign ${name} has ended, and files of its target have changed since; give this one another name with --name, for example --name ${name}-2`,
    );
  return 'show';
}

interface Look {
  state: CampaignState | undefined;
  decision: Decision;
}

/**
 * Decides what to do from the server's state, and notes the fields that changed since the last run.
 * @throws UserError if the name belongs to a campaign of another configuration that runs or is complete, or to another home.
 */
async function look(temporal: Temporal, start: Start, note: (text: string) => void): Promise<Look> {
  const { name } = start;
  const state = await campaignState(temporal, name);
  const decision = decide(state, start);
  if (decision === 'attach' && state?.terms !== start.terms) note(OTHER_TERMS);
  if (state === undefined || state.configDigest === start.configDigest)
    return { state, decision: decision as Decision };
  const before = (await inputOf(temporal, name, state)).campaign;
  const changed = changedFieldsText(before, await start.sent()) || 'files that it names';
  const renamed = `give this one another name with --name, for example --name ${name}-2`;
  const [was, fix] =
    state.status === 'RUNNING'
      ? ['is running', `\`campaign cancel ${name}\` first, then the same command continues it, or ${renamed}`]
      : ['was run', renamed];
  if (decision === 'refuse')
    throw new UserError(
      'name_taken',
      'name',
      `campaign ${name} ${was} with another configuration (${changed}); ${fix}`,
    );
  note(`it starts again with another configuration (${changed}); results that do not depend on it are found`);
  return { state, decision };
}

/** Options of `campaign run`, with and without --detach. */
export type BeginOptions = StartOptions & CommonOptions;

/**
 * Looks at the campaign. Terminates one that runs where the user wants it to start again with the current code, and starts one that is complete
 * again where the user wants its failures retried. The start terminates children that still run.
 */
async function begin(
  temporal: Temporal,
  start: Start,
  { restart, retry, yes, note }: BeginOptions & { note: (text: string) => void },
): Promise<Look> {
  const { name } = start;
  const now = await look(temporal, start, note);
  const handle = temporal.client.workflow.getHandle(workflowIds.campaign(name));
  if (restart && now.decision === 'attach') {
    const otherwise = 'nothing was ended';
    await requireYes(`terminate campaign ${name}, which runs, and start it again`, { yes, otherwise });
    await handle.terminate('--restart');
    return look(temporal, start, note);
  }
  if (!retry || now.decision !== 'show') return now;
  const { failed } = (await handle.result()) as CampaignResult;
  note(failed.length > 0 ? `retrying: ${failed.join(', ')}` : `nothing failed in ${name}`);
  return failed.length > 0 ? { ...now, decision: 'start' } : now;
}

const decisions: Record<Decision, string> = {
  start: 'started',
  attach: 'is running already',
  show: 'has ended already',
};

/** `campaign run --detach`: starts a campaign on a server that runs, and leaves. */
export async function startDetached(file: string, options: BeginOptions): Promise<void> {
  const home = homeOf(options);
  const at = addressOf(options);
  const campaign = readCampaign(file, options);
  const { name } = campaign;
  await makeHome(home.root);
  const start = await startOf({ campaign, home, base: await baseIdOf(campaign, home), options });
  const temporal = await connect(at, home);
  try {
    await registerSearchAttributes(temporal, at, note);
    await allowCampaign({ home, campaign });
    const { state, decision } = await begin(temporal, start, { ...options, note });
    if (state?.isCancelling)
      throw new UserError(
        'running',
        'campaign',
        `campaign ${name} is being cancelled and saves its trainings; start it again in a minute`,
      );
    if (decision === 'start') await startCampaign(temporal, { ...start, campaign: await start.sent() });
    const status = decisions[decision];
    const queue = taskQueues.control(start.store);
    const waits = decision !== 'show' && !(await hasWorkers(temporal, queue));
    const waitsFor = waits ? `control workers of ${home.root} (${queue})` : undefined;
    if (options.json) return print(JSON.stringify({ campaign: name, status, waitsFor }));
    print(`campaign ${name} ${status}; \`campaign status ${name} --watch\` follows it`);
    for (const line of placeLines(at, name)) print(line);
    if (waitsFor) print(`none of the ${waitsFor} runs now: it waits until one is started (docs/machines.md)`);
  } finally {
    await temporal.close();
  }
}

/** Starts after which an artifact that is damaged again fails the campaign: the cause is still present. */
const MAX_RESTARTS = 3;
/** Another worker does not repair workflow code that fails for so long. */
const FAILING_MS = 60_000;

const OTHER_TERMS =
  'changes to budget, approval and rollouts.maxBrokenShare take effect after this run ends; the same command then starts it again';

export interface CampaignRun extends Start, Pick<SupervisedRun, 'home' | 'output' | 'diskIsFull' | 'signal'> {
  temporal: Temporal;
  options: BeginOptions;
  /** The pool whose workers a new start waits for. */
  pool: string;
}

/** `startWorkers` gets the version of the workflow code that a running campaign began on. @returns false if it was interrupted. @throws UserError if it ended otherwise. */
export async function campaignToEnd(
  run: CampaignRun & { startWorkers: (begunOn?: string) => Promise<void> },
): Promise<boolean> {
  const { home, options, name, temporal, output, signal, pool } = run;
  const note = (text: string) => output.note('campaign', text);
  let restarts = 0;
  /** A complete campaign whose report is lost starts again. */
  const withReport = async (now: Look): Promise<Look> => {
    const lost = now.decision === 'show' ? await lostReport({ home: home.root, name }) : undefined;
    // The report of a cluster's campaign may be in another home.
    if (!lost || (lost.isMissing && options.temporalAddress) || restarts++ >= MAX_RESTARTS) return now;
    note(`the report ${lost.problem}`);
    return { ...now, decision: 'start' };
  };
  let now = await withReport(await begin(temporal, run, { ...options, note }));
  const { state } = now;
  if (now.decision === 'attach' && state?.pool && state.pool !== pool)
    throw new UserError(
      'other_pool',
      'workers.pool',
      `campaign ${name} runs for the workers of pool ${state.pool}, and workers.pool or the files of the base model have changed since it began; the same command with --restart starts it again for ${pool}`,
    );
  if (now.decision !== 'show') await run.startWorkers(now.decision === 'attach' ? state?.version : undefined);

  const onSnapshot = async (snapshot: Snapshot) => {
    run.diskIsFull();
    await writeStatus({ home: home.root, snapshot });
  };
  // A campaign that was already running may stop at an earlier stage than requested: then it starts again and continues.
  for (; now.decision !== 'show'; now = await withReport(await look(temporal, run, note))) {
    const isCancelling = now.state?.isCancelling ?? false;
    if (now.decision === 'start') await startCampaign(temporal, { ...run, campaign: await run.sent() });
    const begins = isCancelling ? 'is being cancelled; it starts again after that' : 'continues';
    note(`campaign ${name} ${now.decision === 'start' ? 'started' : begins}`);
    const known = readStatus({ home: home.root, name });
    const end = await follow({ temporal, name, output, signal, onSnapshot, known, failingMs: FAILING_MS });
    if (signal.aborted) {
      if (end) await writeStatus({ home: home.root, snapshot: end });
      return false;
    }
    if (end?.status === 'COMPLETED' || (end?.status === 'CANCELLED' && isCancelling)) continue;
    if (end?.status === 'CANCELLED') {
      note(`campaign ${name} was cancelled; the same command continues from what is done`);
      return false;
    }
    if (end?.failureType !== 'ArtifactDamaged' || restarts++ >= MAX_RESTARTS)
      throw new UserError(
        'failed',
        'campaign',
        `campaign ${name} ended as ${end?.status.toLowerCase() ?? 'unknown'}: ${end?.failure ?? 'no failure is recorded'}; the same command tries again from what is done`,
      );
    note(`campaign ${name} starts again and rebuilds the damaged artifact: ${end.failure}`);
  }
  return true;
}
