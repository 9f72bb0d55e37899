/**
 * A campaign from where it stands to its end. Invariant: what a new start of the workflow mends (a damaged artifact, a lost report) is
 * mended without anybody's doing, a few times; anything else that ends it is an error that says why.
 */
import type { Campaign, Stage } from '../../domain/campaign';
import { UserError } from '../errors';
import { campaignFailure, campaignState, retryCampaign, startCampaign, type Digests } from '../temporal';
import { follow } from '../watch/follow';
import type { Snapshot } from '../watch/snapshot';
import { readStatus, writeStatus } from '../watch/status-file';
import { approvalNotes } from './approval-notes';
import { attend } from './attend';
import { decide, type Decision } from './decide';
import { lostReport } from './summary';
import type { ServeOptions, SupervisedRun } from './supervised-run';
import type { TemporalServer } from './temporal-server';

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
  const { home, options, campaign, store, configDigest, terms, temporal, output, interruption } = run;
  const { name } = campaign;
  const { until, force } = options;
  const { signal } = interruption;
  const noteWaits = approvalNotes(output);
  let timesAnew = 0;
  let { pool } = run;
  const look = async (): Promise<Decision> => {
    const state = await campaignState(temporal, name);
    const decision = decide({ name, store, state, configDigest, terms, until });
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
    if (decision === 'start') await startCampaign(temporal, { campaign, store, configDigest, terms, until, force });
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
