/**
 * A campaign from where it stands to its end: what its name means to Temporal, what is done at every look at it, and when it is started again.
 * What a new start of the workflow mends (a damaged artifact, a lost report) is mended by itself, a few times; anything else that ends the
 * campaign is an error that says why.
 */
import { resolve } from 'node:path';
import { openStore } from '../../store/open-store';
import { approvalCommands } from '../../domain/approval';
import type { Campaign, Stage } from '../../domain/campaign';
import { kindOf } from '../../domain/kinds';
import { LAST_STAGE, taskQueues } from '../../domain/work';
import { withPlugins } from '../../plugins';
import { note, print } from '../../terminal';
import { refuseNameOfAnalysis } from '../analyse/folder';
import {
  baseIdOf,
  type CampaignOverrides,
  configDigests,
  loadCampaign,
  termsDigest,
  travelling,
} from '../campaign-file';
import { UserError } from '../errors';
import { type CommonOptions, homeOf, requireYes } from '../options';
import { type Home, makeHome } from '../project';
import { lostReport } from '../reports';
import {
  type CampaignState,
  campaignState,
  type Digests,
  inputOf,
  ofAnotherHome,
  retryCampaign,
  startCampaign,
} from '../control';
import { addressOf, connect, hasWorkers, placeLines, registerSearchAttributes, type Temporal } from '../temporal';
import { follow } from '../campaign-status';
import type { ProgressOutput } from '../watch/output';
import { readStatus, type Snapshot, writeStatus } from '../watch/snapshot';
import { workflowIds } from '../../workflows/messages';
import { allowCampaign } from './allowed';
import { changedFieldsText } from './changed-fields';
import { keepPlugins } from './plugins';
import type { SupervisedOptions, SupervisedRun } from './supervisor';

export interface StartOptions extends CampaignOverrides {
  until?: Stage;
  /** Go on with a base model that can't work on the target. */
  force?: boolean;
  /** Terminate it if it runs, so that it starts again with the current code. */
  restart?: boolean;
}

/** What a campaign is started with, from its file. `store` is the id of the home's store, made if there is none. */
export async function readStart({ file, home, options }: { file: string; home: Home; options: StartOptions }) {
  const campaign = loadCampaign({ file, overrides: options });
  const { environments } = withPlugins(campaign.plugins);
  refuseNameOfAnalysis({ home, name: campaign.name });
  return {
    campaign,
    file: resolve(file),
    configDigests: await configDigests({ campaign, file, until: options.until }),
    terms: termsDigest(campaign),
    // What can't be read is told by whoever looks at the target.
    contents: await kindOf(environments, campaign.target)
      .contents?.(campaign.target)
      .catch(() => undefined),
    store: async () => (await openStore(home.root)).id(),
  };
}

export type Decision = 'start' | 'attach' | 'show';

/** The state of a named campaign, as a command reads it. */
type About = Digests & { name: string; store: string; until?: Stage | undefined };

class OtherConfiguration extends UserError {}

/** Returns whether a campaign ended before its base rollouts were complete, so that another configuration may take its name. */
const isNameFree = ({ status, stage }: CampaignState): boolean =>
  status !== 'RUNNING' && status !== 'COMPLETED' && (stage === undefined || stage === 'rollouts');

/**
 * A running campaign is attached to; a finished one is shown; one that failed, was ended, stopped after another stage or may now spend more
 * starts again, and finds its artifacts. All that only under the same configuration, as far as it came, and from its home.
 * @throws UserError if the name belongs to another configuration or another home.
 */
export function decide(state: CampaignState | undefined, o: About): Decision {
  const { name, store, configDigests, terms, contents, until } = o;
  if (!state) return 'start';
  if (state.taskQueue !== taskQueues.control(store)) throw ofAnotherHome(name, state);
  if (state.configDigest !== configDigests[state.until ?? LAST_STAGE]) {
    if (isNameFree(state)) return 'start';
    const how = state.status === 'RUNNING' ? 'is running' : 'was run';
    throw new OtherConfiguration(`campaign ${name} ${how} with another configuration`);
  }
  if (state.status === 'RUNNING') return 'attach';
  if (state.status !== 'COMPLETED' || state.until !== until || state.terms !== terms) return 'start';
  if (state.contents !== undefined && state.contents !== contents)
    throw new UserError(
      `campaign ${name} has ended, and files of its target have changed since; give this one another name with --name, for example --name ${name}-2`,
    );
  return 'show';
}

/** Decides by the state that the server knows; `travelling` is the campaign as it would be started now. */
async function decideNow(temporal: Temporal, about: About & { travelling: () => Promise<Campaign> }) {
  const { name } = about;
  const state = await campaignState(temporal, name);
  try {
    return { state, decision: decide(state, about) };
  } catch (error) {
    if (!(error instanceof OtherConfiguration) || !state) throw error;
    const { campaign } = await inputOf(temporal, name, state);
    const changed = changedFieldsText(campaign, await about.travelling());
    throw new UserError(
      `${error.message} (${changed || 'a file that it names has changed'}); give this one another name with --name, for example --name ${name}-2`,
    );
  }
}

/** Terminates a campaign if it runs, so that it starts again with the current code. The start terminates its children that still run. */
async function terminate(temporal: Temporal, about: Parameters<typeof decideNow>[1], yes: boolean | undefined) {
  const { name } = about;
  const { decision } = await decideNow(temporal, about);
  if (decision !== 'attach') return;
  await requireYes(`terminate campaign ${name}, which runs, and start it again`, {
    yes,
    otherwise: 'nothing was ended',
  });
  await temporal.client.workflow.getHandle(workflowIds.campaign(name)).terminate('--restart');
}

const decisions: Record<Decision, string> = {
  start: 'started',
  attach: 'is running already',
  show: 'has ended already',
};

/** `campaign run --detach`: starts a campaign on a server that runs, or retries it, and leaves. */
export async function startDetached(
  file: string,
  options: StartOptions & CommonOptions & { retry?: string | true },
): Promise<void> {
  const home = homeOf(options);
  const at = addressOf(options);
  const { until, force, restart, retry, yes } = options;
  await makeHome(home.root);
  const read = await readStart({ file, home, options });
  const { campaign } = read;
  const { name } = campaign;
  const input = { ...read, store: await read.store(), until, force };
  const sent = async () => travelling({ ...input, home, base: await baseIdOf(campaign, home) });
  const temporal = await connect(at, home);
  try {
    await registerSearchAttributes(temporal, at, note);
    const about = { ...input, name, travelling: sent };
    if (restart) await terminate(temporal, about, yes);
    const { state, decision } = await decideNow(temporal, about);
    if (state?.isCancelling)
      throw new UserError(`campaign ${name} is being cancelled and saves its trainings; start it again in a minute`);
    if (decision !== 'show' || retry !== undefined) {
      await allowCampaign({ home, campaign });
      await keepPlugins(home, campaign);
    }
    if (decision === 'start') await startCampaign(temporal, { ...input, campaign: await sent() });
    const only = retry === true ? undefined : retry;
    const retried = decision === 'show' && retry !== undefined ? await retryCampaign(temporal, { name, only }) : [];
    const isOpen = decision !== 'show' || retried.length > 0;
    const queue = taskQueues.control(input.store);
    const waitsFor =
      isOpen && !(await hasWorkers(temporal, queue)) ? `control workers of ${home.root} (${queue})` : undefined;
    const status = retried.length > 0 ? `retries ${retried.join(', ')}` : decisions[decision];
    if (options.json) return print(JSON.stringify({ campaign: name, status, waitsFor }));
    print(`campaign ${name} ${status}; \`campaign status ${name} --watch\` follows it`);
    for (const line of placeLines(at, name)) print(line);
    if (waitsFor) print(`none of the ${waitsFor} runs now: it waits until one is started (docs/machines.md)`);
  } finally {
    await temporal.close();
  }
}

/** Notes how to approve each thing that waits, once: the tree goes on showing that it waits. */
function approvalNotes(output: Pick<ProgressOutput, 'note'>): (snapshot: Snapshot) => void {
  const noted = new Set<string>();
  return ({ name, progress, children }) => {
    for (const { waiting } of [progress, ...children.map((child) => child.progress)].flatMap((one) => one ?? [])) {
      if (!waiting || noted.has(waiting.of)) continue;
      noted.add(waiting.of);
      const { approve, reject } = approvalCommands(name, waiting);
      const names = waiting.names.join(', ');
      const subject = waiting.what === 'environment' ? `the environment of ${names}` : names;
      output.note(
        'campaign',
        `${subject}: waits for approval. In another terminal: \`campaign status ${name}\`, then \`${approve}\` or \`${reject}\`. ` +
          'Ctrl-C loses nothing: the same command waits on',
      );
    }
  };
}

/** Everything in a snapshot that changes only when work is done, as a text; undefined if a worker does not answer. */
function advanceOf({ progress, progressAt, children, activities }: Snapshot): string | undefined {
  if (!progress || progressAt !== undefined || children.some((child) => !child.progress)) return undefined;
  const running = [...activities, ...children.flatMap((child) => child.activities)];
  const steps = running.map(({ heartbeat }) => heartbeat && ('step' in heartbeat ? heartbeat.step : undefined));
  return JSON.stringify([progress, children.map((child) => child.progress), steps]);
}

/** What is damaged again after so many starts is not the past's doing. */
const MAX_RESTARTS = 3;
/** Code that fails so often in a row is not mended by another worker. */
const MAX_CODE_FAILURES = 6;

const OTHER_TERMS =
  'it runs with the budget, the approval and the limit of broken rollouts that it was started with; what the file says now holds once it has ended: then it starts again over what is kept';

const OTHER_POOL =
  'it runs for the pool of workers and the base model that it was started with, and workers.pool or the files of the base model have changed since: ' +
  '`campaign cancel` ends it, then the same command starts it with what there is now';

export interface CampaignRun extends Digests, Pick<SupervisedRun, 'home' | 'output' | 'diskIsFull' | 'signal'> {
  temporal: Temporal;
  options: SupervisedOptions & StartOptions & { retry?: string | true };
  campaign: Campaign;
  /** The campaign file. */
  file?: string;
  /** The id of the home's store. */
  store: string;
  /** The id of its base model. */
  base: string;
  /** Whose workers a new start of it waits for. */
  pool: string;
}

/** @returns false if it was interrupted. @throws UserError if it ended otherwise. */
export async function campaignToEnd(
  run: CampaignRun & {
    startWorkers: (pool: string, version?: string) => Promise<void>;
    onProgress?: () => void;
  },
): Promise<boolean> {
  const { home, options, campaign, temporal, output, signal } = run;
  const { name } = campaign;
  const { until, force, retry, restart } = options;
  const note = (text: string) => output.note('campaign', text);
  const about = { ...run, name, until, travelling: () => travelling({ ...run, until }) };
  let restarts = 0;
  let { pool } = run;
  let version: string | undefined;
  let isCancelling = false;
  const look = async (): Promise<Decision> => {
    const { state, decision } = await decideNow(temporal, about);
    isCancelling = state?.isCancelling ?? false;
    if (decision === 'attach' && state?.terms !== run.terms) note(OTHER_TERMS);
    // Its workers come before it goes on: what it waits for now is what they have to be.
    if (decision === 'attach' && state?.pool) pool = state.pool;
    version = decision === 'attach' ? state?.version : undefined;
    const lost = decision === 'show' ? lostReport({ home: home.root, name }) : undefined;
    // That of a cluster's campaign may be in another home.
    if (!lost || (lost.isMissing && options.temporalAddress) || restarts++ >= MAX_RESTARTS) return decision;
    note(`the report ${lost.file} ${lost.problem}: it is written anew`);
    return 'start';
  };
  if (restart) await terminate(temporal, about, options.yes);
  let decision = await look();
  if (decision === 'show' && retry !== undefined) {
    const only = retry === true ? undefined : retry;
    const again = await retryCampaign(temporal, { name, only });
    note(again.length > 0 ? `retrying: ${again.join(', ')}` : `nothing failed in ${only ?? name}`);
    decision = await look();
  }
  if (decision !== 'show') await run.startWorkers(pool, version);
  if (pool !== run.pool) note(OTHER_POOL);

  const noteWaits = approvalNotes(output);
  let reached = '';
  const onSnapshot = async (snapshot: Snapshot) => {
    noteWaits(snapshot);
    run.diskIsFull();
    const now = advanceOf(snapshot);
    if (now !== undefined && now !== reached) run.onProgress?.();
    reached = now ?? reached;
    await writeStatus({ home: home.root, snapshot });
  };
  // One that was attached to may stop at an earlier stage than the one asked for: then it starts again and goes on from there.
  for (; decision !== 'show'; decision = await look()) {
    if (decision === 'start' && pool !== run.pool)
      throw new UserError(
        `campaign ${name} has ended for pool ${pool}; the same command starts it again for ${run.pool}`,
      );
    if (decision === 'start')
      await startCampaign(temporal, { ...run, campaign: await travelling({ ...run, until }), until, force });
    const begins = isCancelling ? 'is being cancelled; it starts again after that' : 'goes on';
    note(`campaign ${name} ${decision === 'start' ? 'started' : begins}`);
    const known = readStatus({ home: home.root, name });
    const end = await follow({ temporal, name, output, signal, onSnapshot, known, maxFailures: MAX_CODE_FAILURES });
    if (signal.aborted) {
      if (end) await writeStatus({ home: home.root, snapshot: end });
      return false;
    }
    if (end?.status === 'COMPLETED' || (end?.status === 'CANCELLED' && isCancelling)) continue;
    if (end?.status === 'CANCELLED') {
      note(`campaign ${name} was cancelled; the same command continues from what is done`);
      return false;
    }
    if (end?.damaged === undefined || restarts++ >= MAX_RESTARTS)
      throw new UserError(
        `campaign ${name} ended as ${end?.status.toLowerCase() ?? 'unknown'}: ${end?.failure ?? 'no failure is recorded'}; the same command tries again from what is done`,
      );
    note(`campaign ${name} starts again and makes anew what is damaged: ${end.damaged}`);
  }
  return true;
}
