/**
 * From errors of the parts to Temporal's failures, and what a worker does that fails everything: it stops taking steps before it has failed what
 * others could do. With a driver that broke, every training of the queue would come to it, since it is always free.
 */
import { Context } from '@temporalio/activity';
import {
  ApplicationFailure,
  CancelledFailure,
  TemporalFailure,
  type ApplicationFailureOptions,
} from '@temporalio/common';
import { tmpdir } from 'node:os';
import { diskFull } from '../artifacts/durable-file';
import { atHand } from '../artifacts/given';
import { workerIdentity } from '../artifacts/place';
import { isFailure, OutsideFailure, retryOf, type FailureType, backoffMs } from '../domain/failures';
import { plainText } from '../domain/plain-text';
import { taskQueues } from '../domain/work';
import { settleSpending } from '../llm/spending';
import { type Dependencies, withHeartbeats } from './context';

/** Temporal tries again what is outside; the rest goes to the workflow at once, which knows what to do with it. */
const failure = (type: FailureType, o: Omit<ApplicationFailureOptions, 'type' | 'nonRetryable'>): ApplicationFailure =>
  ApplicationFailure.create({
    ...o,
    message: plainText(o.message ?? ''),
    type,
    nonRetryable: retryOf(type) !== 'outside',
  });

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

type Activity = (...input: unknown[]) => Promise<unknown>;

const wrapped = <A extends object>(activities: A, wrap: (run: Activity) => Activity): A =>
  Object.fromEntries(Object.entries(activities).map(([name, run]) => [name, wrap(run as Activity)])) as A;

/**
 * Wraps activities so that they heartbeat, whatever they throw goes through `toFailure`, names of what the campaign was given are paths of this machine,
 * and a step of another store than this worker's is not begun.
 * `home`: of the campaigns.
 */
export const mapped = <A extends object>(activities: A, { home, store }: Pick<Dependencies, 'home' | 'store'>): A =>
  // `queue`: of the step's workflow, which is that of its store.
  wrapped(activities, (run) => async (input, queue) => {
    try {
      if (queue !== undefined) await checkStore(String(queue), { home, store });
      return await withHeartbeats(async () => {
        const result = await run(await atHand(store, input));
        await Promise.all([store.noted?.(), settleSpending(store)]);
        return result;
      });
    } catch (error) {
      await settleSpending(store).catch(() => undefined);
      throw await toFailure(error, home);
    }
  });

async function checkStore(queue: string, { home, store }: Pick<Dependencies, 'home' | 'store'>): Promise<void> {
  const own = taskQueues.control(await store.id());
  if (queue === own) return;
  const has = `this worker's (${workerIdentity()}), in ${home}, is that of ${own}`;
  const fix = 'start it with the CAMPAIGN_HOME of that store, or with another CAMPAIGN_POOL';
  throw new OutsideFailure('WrongStore', `the step is of the store of ${queue}; ${has}; ${fix}`);
}

/** In a row, with nothing between them that ended well or went on for longer. */
const FAULTS = 3;
const SOON_MS = 120_000;

/** Activities that count what they come to; `onFaulty` is told once why the worker should stop. */
export function stoppingWhenFaulty<A extends object>(
  activities: A,
  o: { onFaulty: (why: string) => void; now?: () => number },
): A {
  const { onFaulty, now = Date.now } = o;
  let faults = 0;
  return wrapped(activities, (run) => async (...input) => {
    const begun = now();
    try {
      const result = await run(...input);
      faults = 0;
      return result;
    } catch (error) {
      // What is outside, or wrong with what it was given, says nothing of the worker.
      if (error instanceof ApplicationFailure && retryOf(error.type) === 'own') {
        faults = now() - begun < SOON_MS ? faults + 1 : 0;
        const last = `the last with ${error.type}: ${error.message}`;
        if (faults === FAULTS) onFaulty(`${FAULTS} steps in a row failed soon after they began, ${last}`);
      }
      throw error;
    }
  });
}
