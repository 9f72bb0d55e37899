/** What every activity is given: one of each outside thing, passed in. */
import { Context } from '@temporalio/activity';
import {
  ApplicationFailure,
  CancelledFailure,
  TemporalFailure,
  type ApplicationFailureOptions,
} from '@temporalio/common';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { z } from 'zod';
import type { ArtifactRef } from '../domain/artifacts';
import { diskFull } from '../artifacts/disk-full';
import type { ArtifactStore } from '../artifacts/store';
import { canonical } from '../artifacts/hash';
import { workerIdentity } from '../artifacts/place';
import { type AnalysisHeartbeat, backoffMs, taskQueues, type Work } from '../domain/work';
import { isFailure, OutsideFailure, retryOf, type FailureType } from '../domain/failures';
import { openLedger } from '../language-model/ledger';
import type { Ledger } from '../language-model/types';
import type { PolicyClient } from '../policy/client';
import type { Merge } from '../policy/merge';
import type { Registry } from '../registry';
import type { EnvironmentPool } from './environments';
import type { GpuGroups } from './gpu-groups';
import type { Payer } from './types';

export interface Dependencies {
  store: ArtifactStore;
  environments: EnvironmentPool;
  /** The kinds that campaigns may pick. */
  kinds: Registry;
  /** Folder of the campaigns on this machine: artifacts, trainer folders, reports. */
  home: string;
  /** The Python interpreter of the trainer's virtual environment. */
  python: string;
  /** The base model that the operator says the policy server serves (CAMPAIGN_BASE_ID). */
  baseId?: string | undefined;
}

/** Of the activities that make rollouts. */
export type PolicyDependencies = Dependencies & { client: PolicyClient };
/** Of the activities that train. */
export type GpuDependencies = PolicyDependencies & { gpus: GpuGroups; merge: Merge };

/** Where a home's files are written before they have their names: the store's own folder, since its leftovers are removed. */
export const asideIn = (home: string): string => join(home, 'artifacts', 'aside');

/** Temporal tries again what is outside; the rest goes to the workflow at once, which knows what to do with it. */
const failure = (type: FailureType, o: Omit<ApplicationFailureOptions, 'type' | 'nonRetryable'>): ApplicationFailure =>
  ApplicationFailure.create({ ...o, type, nonRetryable: retryOf(type) !== 'outside' });

export const fail = (type: FailureType, message: string): ApplicationFailure => failure(type, { message });

/**
 * The one mapping from errors of the parts to Temporal's failures. A cancelled activity of a worker that goes down is tried again elsewhere; one that the workflow cancelled, or that is no longer this worker's, is cancelled.
 */
async function toFailure(error: unknown, home: string): Promise<unknown> {
  const { cancellationSignal: signal, info } = Context.current();
  if (signal.aborted) {
    const shutdown = signal.reason instanceof CancelledFailure && signal.reason.message === 'WORKER_SHUTDOWN';
    return shutdown ? fail('WorkerShutdown', 'the worker is shutting down; another one continues') : signal.reason;
  }
  if (error instanceof TemporalFailure) return error;
  if (!(error instanceof Error)) return fail('Unexpected', String(error));
  const known = await knownFailure(error, home);
  if (!known) return defect(error);
  const { type, message, retryAfterMs } = known;
  // Never sooner than without it: an endpoint that always says "in a second" would use up the attempts within a minute.
  const delay = retryAfterMs !== undefined && { nextRetryDelay: Math.max(retryAfterMs, backoffMs(info.attempt)) };
  return failure(type, { message, cause: error, ...delay });
}

/** Of the table, whoever passed it on as what; undefined of a defect. */
async function knownFailure(error: Error, home: string): Promise<OutsideFailure | undefined> {
  const full = await withoutRoom(error, home);
  if (full) return full;
  if (error instanceof OutsideFailure) return error;
  if (isDefect(error)) return undefined;
  const said = error.name === 'Error' ? error.message : `${error.name}: ${error.message}`;
  const away = causesOf(error).find(({ code }) => AWAY.test(code ?? ''));
  return new OutsideFailure(away ? 'EndpointUnavailable' : 'Unexpected', away ? `${said}: ${away.message}` : said);
}

/** What the system, or the client of HTTP, says where the other side does not answer. */
const AWAY = /^(ECONN|ENOTFOUND|EAI_AGAIN|ETIMEDOUT|EHOSTUNREACH|ENETUNREACH|UND_ERR_)/;

/** The error, what caused it, and so on. */
function causesOf(error: Error): NodeJS.ErrnoException[] {
  return error.cause instanceof Error ? [error, ...causesOf(error.cause)] : [error];
}

/**
 * What only a defect of the program throws. Not a SyntaxError, which comes of what others wrote; nor one with a cause (`fetch` throws a
 * TypeError where there is no connection), or for want of memory: they may be gone the next time.
 */
const isDefect = (error: Error): boolean =>
  error.cause === undefined &&
  (error instanceof TypeError ||
    error instanceof ReferenceError ||
    (error instanceof RangeError && !/memory|allocat/i.test(error.message)));

const defect = (error: Error): ApplicationFailure =>
  ApplicationFailure.create({ type: error.name, message: error.message, nonRetryable: true, cause: error });

/** DiskFull where the system said so. */
async function withoutRoom(error: Error, home: string): Promise<OutsideFailure | undefined> {
  const known = causesOf(error).find((cause) => isFailure(cause, 'DiskFull'));
  if (known) return known as unknown as OutsideFailure;
  const cause = causesOf(error).find(({ code }) => code === 'ENOSPC' || code === 'EDQUOT');
  if (!cause) return undefined;
  if (cause.path !== undefined) return (await diskFull(cause, { path: cause.path })) as OutsideFailure;
  const fix = `free some room where ${home} or ${tmpdir()} is: work goes on by itself`;
  return new OutsideFailure('DiskFull', `${cause.message}; ${fix}`, error);
}

/**
 * Wraps activities so that whatever they throw goes through `toFailure`, and a step of another store than this worker's is not begun. `home`: of
 * the campaigns; `queue`: of the step's workflow, which is that of its store.
 */
export function mapped<A extends object>(activities: A, { home, store }: Pick<Dependencies, 'home' | 'store'>): A {
  const wrap =
    (run: (input: unknown) => Promise<unknown>) =>
    async (input: unknown, queue?: string): Promise<unknown> => {
      try {
        if (queue !== undefined) await checkStore(queue, { home, store });
        return await run(input);
      } catch (error) {
        throw await toFailure(error, home);
      }
    };
  return Object.fromEntries(Object.entries(activities).map(([name, run]) => [name, wrap(run)])) as A;
}

async function checkStore(queue: string, { home, store }: Pick<Dependencies, 'home' | 'store'>): Promise<void> {
  const own = taskQueues.control(await store.id());
  if (queue === own) return;
  const has = `this worker's (${workerIdentity()}), in ${home}, is that of ${own}`;
  const fix = 'start it with the CAMPAIGN_HOME of that store, or with another CAMPAIGN_POOL';
  throw new OutsideFailure('WrongStore', `the step is of the store of ${queue}; ${has}; ${fix}`);
}

/** For a part that may take long: its progress is the activity's heartbeat. */
export function working(title: string): Work {
  const context = Context.current();
  return {
    signal: context.cancellationSignal,
    progress: (done, total) => context.heartbeat({ kind: 'analysis', title, done, total } satisfies AnalysisHeartbeat),
  };
}

/** Pieces of replies come by the hundred: they are told of no more often. */
const PIECES_MS = 500;

/** For a part that may ask a language model: what comes of a reply is progress too. */
export function asking(o: Payer & { store: ArtifactStore; title: string }): Work & { ledger: Ledger } {
  const { store, campaign, budget, title } = o;
  const context = Context.current();
  const told = { done: 0, total: 1, characters: 0, at: 0 };
  const tell = (): void => {
    const { done, total, characters } = told;
    told.at = Date.now();
    const heard = characters > 0 && { characters };
    context.heartbeat({ kind: 'analysis', title, done, total, ...heard } satisfies AnalysisHeartbeat);
  };
  const isDue = () => Date.now() - told.at >= PIECES_MS;
  return {
    signal: context.cancellationSignal,
    progress(done, total) {
      const further = done !== told.done || total !== told.total;
      Object.assign(told, { done, total });
      if (further || isDue()) tell();
    },
    ledger: openLedger({
      ...{ store, campaign, budget },
      heard(piece) {
        told.characters += piece.length;
        if (isDue()) tell();
      },
    }),
  };
}

/** An artifact that holds JSON. Throws where it does not have the schema's form: something else wrote it. */
export async function readJson<T>(store: ArtifactStore, ref: ArtifactRef, schema: z.ZodType<T>): Promise<T> {
  const parsed = schema.safeParse(JSON.parse((await store.read(ref)).toString('utf8')));
  if (parsed.success) return parsed.data;
  throw new Error(`artifact ${ref.uri} has another form than expected: ${z.prettifyError(parsed.error)}`);
}

/** What is under the key, or else is made and stored there as canonical JSON: equal values are equal artifacts. */
export async function keptJson(
  store: ArtifactStore,
  { key, ...provenance }: { key: string; producer: string; inputs: ArtifactRef[] },
  make: () => unknown,
): Promise<ArtifactRef> {
  const known = await store.find(key);
  if (known) return known;
  const body = canonical(await make());
  return store.put({ key, ...provenance, mediaType: 'application/json', body });
}
