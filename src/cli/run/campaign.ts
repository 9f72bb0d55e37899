/**
 * A campaign from where it stands to its end: what its name means to Temporal, what is done at every look at it, and when it is started again.
 * What a new start of the workflow mends (a damaged artifact, a lost report) is mended by itself, a few times; anything else that ends the
 * campaign is an error that says why.
 */
import type { Campaign, Stage } from '../../domain/campaign';
import { LAST_STAGE, taskQueues } from '../../domain/work';
import { UserError } from '../errors';
import {
  campaignFailure,
  type CampaignState,
  campaignState,
  type Digests,
  ofAnotherHome,
  retryCampaign,
  startCampaign,
  type Temporal,
} from '../temporal';
import {
  ActivityCompletionError,
  ActivityNotFoundError,
  ServiceError,
  WorkflowNotFoundError,
} from '@temporalio/client';
import { ApplicationFailure } from '@temporalio/common';
import { pidHere } from '../../artifacts/place';
import type { FailureType } from '../../domain/failures';
import { activitiesOf, type ActivitySnapshot, readStatus, type Snapshot, writeStatus } from '../watch/snapshot';
import { lives } from './processes';
import type { ProgressOutput } from '../watch/output';
import type { ServeOptions, SupervisedRun } from './supervisor';
import { follow } from '../watch/follow';
import { lostReport } from '../reports';
import type { TemporalServer } from './temporal-server';

export type Decision = 'start' | 'attach' | 'show';

/**
 * A running campaign is attached to; a finished one is shown; one that failed, was ended, stopped after another stage or may now spend more
 * starts again, and finds its artifacts. All that only under the same configuration, as far as it came, and from the home that it is of.
 * @throws UserError if the name belongs to another configuration or another home.
 */
export function decide({
  name,
  store,
  state,
  configDigests,
  terms,
  until,
}: Digests & {
  name: string;
  store: string;
  state: CampaignState | undefined;
  until?: Stage | undefined;
}): Decision {
  if (!state) return 'start';
  if (state.taskQueue !== taskQueues.control(store)) throw ofAnotherHome(name, state);
  if (state.configDigest !== configDigests[state.until ?? LAST_STAGE])
    throw new UserError(
      `campaign ${name} ${state.status === 'RUNNING' ? 'is running' : 'was run'} with another configuration; give this one its own name with --name, for example --name ${name}-2`,
    );
  if (state.status === 'RUNNING') return 'attach';
  return state.status === 'COMPLETED' && state.until === until && state.terms === terms ? 'show' : 'start';
}

const WORKER_DIED: FailureType = 'WorkerDied';
const ANSWER_MS = 4000;
/** The step has ended meanwhile, or the server is away. */
const harmless = [ActivityNotFoundError, ActivityCompletionError, WorkflowNotFoundError, ServiceError];

type Step = Pick<ActivitySnapshot, 'id' | 'workflowId' | 'state' | 'worker' | 'attempt'>;

/**
 * Gives steps whose worker was killed back to the server, which otherwise waits for their heartbeat timeout: only those of processes of this
 * place that are gone, and only the attempt that the dead one had. Everything is read from the snapshot and from the server, so that it holds
 * after a crash of this process as well. @returns how many steps begin again now.
 */
export async function giveBackLostWork({
  temporal,
  snapshot,
}: {
  temporal: Temporal;
  snapshot: Pick<Snapshot, 'activities' | 'children'>;
}): Promise<number> {
  const steps: Step[] = [snapshot, ...snapshot.children].flatMap(({ activities }) => activities);
  const givenBack = await Promise.all(steps.filter(isLost).map((step) => giveBack(temporal, step)));
  return givenBack.filter(Boolean).length;
}

/** Whether the process that has the step is gone. Of another place's processes nothing is known. */
export function isLost({ state, worker }: Pick<Step, 'state' | 'worker'>): boolean {
  const pid = pidHere(worker ?? '');
  return state !== 'scheduled' && pid !== undefined && !lives(pid);
}

async function giveBack({ client }: Temporal, step: Step): Promise<boolean> {
  const { id, workflowId, worker } = step;
  const at = { workflowId, activityId: id };
  const message = `the worker ${worker} was killed`;
  try {
    return await client.withDeadline(Date.now() + ANSWER_MS, async () => {
      // The snapshot may be old: somebody who lives may have the step by now.
      const now = activitiesOf(await client.workflow.getHandle(workflowId).describe()).find((one) => one.id === id);
      if (now?.worker !== worker || now?.attempt !== step.attempt || !isLost(now)) return false;
      await (now.state === 'cancelling'
        ? // Whoever cancelled it (a pause) waits for its end.
          client.activity.reportCancellation(at)
        : // The workflow begins it again.
          client.activity.fail(at, ApplicationFailure.nonRetryable(message, WORKER_DIED)));
      return true;
    });
  } catch (error) {
    // The next look decides.
    if (harmless.some((type) => error instanceof type)) return false;
    throw error;
  }
}

/** Notes how to approve each thing that waits, once: the tree goes on showing that it waits. */
export function approvalNotes(output: Pick<ProgressOutput, 'note'>): (snapshot: Snapshot) => void {
  const noted = new Set<string>();
  return ({ name, progress, children }) => {
    const waits = [progress?.waiting, ...children.map((child) => child.progress?.waiting)].flatMap((one) => one ?? []);
    for (const { what, of, names } of waits) {
      if (noted.has(of)) continue;
      noted.add(of);
      const [subject, argument] =
        what === 'capabilities' ? [names.join(', '), ''] : [`the environment of ${names[0]}`, ` ${names[0]}`];
      const decide = `\`campaign approve ${name}${argument}\` or \`campaign reject ${name}${argument || ' NAME...'} --reason TEXT\``;
      output.note(
        'campaign',
        `${subject}: waits for approval. In another terminal: \`campaign approvals ${name}\`, then ${decide}. Ctrl-C loses nothing: the same command waits on`,
      );
    }
  };
}

/**
 * What a run does at every look at its campaign: it notes a full disk, writes down where the campaign stands, and gives back what killed workers
 * had.
 */
async function attend(
  { home, output, disk, temporal }: Pick<CampaignRun, 'home' | 'output' | 'disk' | 'temporal'>,
  snapshot: Snapshot,
): Promise<void> {
  disk.isFull();
  await writeStatus({ home: home.root, snapshot });
  if (snapshot.status !== 'RUNNING') return;
  const steps = await giveBackLostWork({ temporal, snapshot });
  if (steps === 1) output.note('campaign', '1 step of a killed worker begins again');
  if (steps > 1) output.note('campaign', `${steps} steps of killed workers begin again`);
}

/** What is damaged again after so many starts is not the past's doing. */
const MAX_ANEW = 3;
/** Code that fails so often in a row is not mended by another worker. */
const MAX_CODE_FAILURES = 6;

const OTHER_TERMS =
  'it runs with the budget, the approval and the limit of broken rollouts that it was started with; what the file says now holds once it has ended: then it starts again over what is kept';

const OTHER_POOL =
  'it runs for the pool of workers and the base model that it was started with, and workers.pool or the files of the base model have changed since: ' +
  '`campaign cancel` ends it, then the same command starts it with what there is now';

export interface CampaignRun
  extends Digests, Pick<SupervisedRun, 'home' | 'output' | 'disk' | 'interruption'>, Pick<TemporalServer, 'temporal'> {
  options: ServeOptions & { until?: Stage; force?: boolean; retry?: string | true };
  campaign: Campaign;
  /** The id of the home's store. */
  store: string;
  /** Whose workers a new start of it waits for. */
  pool: string;
}

/** @returns false if it was interrupted. @throws UserError if it ended otherwise. */
export async function campaignToEnd(
  run: CampaignRun & { startWorkers: (pool: string) => Promise<void> },
): Promise<boolean> {
  const { home, options, campaign, store, configDigests, terms, temporal, output, interruption } = run;
  const { name } = campaign;
  const { until, force } = options;
  const { signal } = interruption;
  const noteWaits = approvalNotes(output);
  let timesAnew = 0;
  let { pool } = run;
  const look = async (): Promise<Decision> => {
    const state = await campaignState(temporal, name);
    const decision = decide({ name, store, state, configDigests, terms, until });
    if (decision === 'attach' && state?.terms !== terms) output.note('campaign', OTHER_TERMS);
    // Its workers come before it goes on: what it waits for now is what they have to be.
    if (decision === 'attach' && state?.pool) pool = state.pool;
    const lost = decision === 'show' ? lostReport({ home, name }) : undefined;
    // That of a cluster's campaign may be in another home.
    const elsewhere = lost?.problem === 'missing' && options.temporalAddress;
    if (!lost || elsewhere || timesAnew++ >= MAX_ANEW) return decision;
    output.note('campaign', `the report ${lost.file} is ${lost.problem}: it is written anew`);
    return 'start';
  };
  let decision = await look();
  if (decision === 'show' && options.retry !== undefined) {
    const only = options.retry === true ? undefined : options.retry;
    const again = await retryCampaign(temporal, { name, only });
    output.note('campaign', again.length > 0 ? `does again: ${again.join(', ')}` : `nothing failed in ${only ?? name}`);
    decision = await look();
  }
  if (decision !== 'show') await run.startWorkers(pool);
  if (pool !== run.pool) output.note('campaign', OTHER_POOL);
  // One that was attached to may stop at an earlier stage than the one asked for: then it starts again and goes on from there.
  for (; decision !== 'show'; decision = await look()) {
    if (decision === 'start' && pool !== run.pool)
      throw new UserError(
        `campaign ${name} has ended for pool ${pool}; the same command starts it again for ${run.pool}`,
      );
    if (decision === 'start') await startCampaign(temporal, { campaign, store, configDigests, terms, until, force });
    output.note('campaign', `campaign ${name} ${decision === 'start' ? 'started' : 'goes on'}`);
    const known = readStatus({ home: home.root, name });
    const onSnapshot = (seen: Snapshot) => {
      noteWaits(seen);
      return attend(run, seen);
    };
    const end = await follow({ temporal, name, output, signal, onSnapshot, known, maxFailures: MAX_CODE_FAILURES });
    if (signal.aborted) {
      if (end) await writeStatus({ home: home.root, snapshot: end });
      return false;
    }
    if (end?.status === 'COMPLETED') continue;
    const { reason, damaged } = await campaignFailure(temporal, name);
    if (damaged === undefined || timesAnew++ >= MAX_ANEW)
      throw new UserError(
        `campaign ${name} ended as ${end?.status.toLowerCase() ?? 'unknown'}: ${reason}; the same command tries again from what is done`,
      );
    output.note('campaign', `campaign ${name} starts again and makes anew what is damaged: ${damaged}`);
  }
  return true;
}
