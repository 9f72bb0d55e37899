/** Maps errors to Temporal's failures, and stops a worker that fails every step: always free, it would take every training of the queue. */
import { Context } from '@temporalio/activity';
import { ApplicationFailure, CancelledFailure, TemporalFailure } from '@temporalio/common';
import { tmpdir } from 'node:os';
import { indexed } from '../store/campaign-index';
import { diskFull } from '../store/durable-file';
import { atHand } from '../store/given';
import { isFailure, OutsideFailure, retryOf } from '../domain/failures';
import { settleSpending } from '../llm/spending';
import type { Dependencies } from './context';
import { activitySignal, settleAttempt, withHeartbeats } from './heartbeat';
import type { PoolInput } from './types';

/** Temporal's first delay, and the shortest that a failure may ask for. */
const FIRST_DELAY_MS = 1_000;

/** Maps an activity's error to a Temporal failure. The failure is final by the retry rule of its type, or when the step has used up its faults. */
function toFailure(error: unknown, home: string): unknown {
  const { cancellationSignal: signal } = Context.current();
  const { reason } = activitySignal();
  const isShutdown = signal.reason instanceof CancelledFailure && signal.reason.message === 'WORKER_SHUTDOWN';
  if (signal.aborted && !isShutdown) return signal.reason;
  if (error instanceof TemporalFailure && !isShutdown) return error;
  const known = isShutdown
    ? new OutsideFailure('WorkerShutdown', 'the worker stops; another one continues')
    : isFailure(reason, 'Superseded')
      ? reason
      : knownFailure(error instanceof Error ? error : new Error(String(error)), home);
  if (!known) {
    const { name, message } = error as Error;
    return ApplicationFailure.create({ type: name, message, nonRetryable: true, cause: error as Error });
  }
  const { type, message, retryAfterMs } = known;
  const retry = retryOf(type);
  const hasNoMoreFaults = settleAttempt(retry);
  const delayMs = retry === 'preempted' ? FIRST_DELAY_MS : retryAfterMs;
  return ApplicationFailure.create({
    ...{ type, message, cause: error instanceof Error ? error : known },
    nonRetryable: retry === 'never' || (retry === 'own' && hasNoMoreFaults),
    ...(delayMs !== undefined && { nextRetryDelay: Math.max(delayMs, FIRST_DELAY_MS) }),
  });
}

/** Returns the typed failure behind an error, or undefined for a defect of the program. */
function knownFailure(error: Error, home: string): OutsideFailure | undefined {
  const full = withoutRoom(error, home);
  if (full) return full;
  if (error instanceof OutsideFailure) return error;
  if (isDefect(error)) return undefined;
  const said = error.name === 'Error' ? error.message : `${error.name}: ${error.message}`;
  const away = causesOf(error).find(({ code }) => AWAY.test(code ?? ''));
  return new OutsideFailure(away ? 'EndpointUnavailable' : 'Unexpected', away ? `${said}: ${away.message}` : said);
}

/** Error codes of the system and of the HTTP client for a server that does not answer. */
const AWAY = /^(ECONN|ENOTFOUND|EAI_AGAIN|ETIMEDOUT|EHOSTUNREACH|ENETUNREACH|UND_ERR_)/;

function causesOf(error: Error): NodeJS.ErrnoException[] {
  return error.cause instanceof Error ? [error, ...causesOf(error.cause)] : [error];
}

/** Only a defect throws these. A TypeError with a cause comes from `fetch`, a SyntaxError from others' texts, some RangeErrors from a lack of memory. */
const isDefect = (error: Error): boolean =>
  error.cause === undefined &&
  (error instanceof TypeError ||
    error instanceof ReferenceError ||
    (error instanceof RangeError && !/memory|allocat/i.test(error.message)));

const withoutRoom = (error: Error, home: string): OutsideFailure | undefined =>
  causesOf(error)
    .map((cause) => diskFull(cause, { path: cause.path ?? `${home} or ${tmpdir()}` }))
    .find((cause) => isFailure(cause, 'DiskFull'));

type Activity = (...input: unknown[]) => Promise<unknown>;

const wrapped = <A extends object>(activities: A, wrap: (run: Activity) => Activity): A =>
  Object.fromEntries(Object.entries(activities).map(([name, run]) => [name, wrap(run as Activity)])) as A;

/** Wraps activities: they heartbeat, map errors, replace places by paths of this machine, and reject a step of another store. */
export const mapped = <A extends object>(activities: A, { home, store }: Pick<Dependencies, 'home' | 'store'>): A =>
  wrapped(activities, (run) => async (input) => {
    try {
      return await withHeartbeats(async () => {
        await checkStore(input, { home, store });
        // The ids of a campaign's children begin with its own.
        const [campaign = ''] = Context.current().info.workflowExecution!.workflowId.split('/');
        const result = await indexed(store.files, campaign, async () => run(await atHand(store, input)));
        await settleSpending(store);
        return result;
      });
    } catch (error) {
      await settleSpending(store).catch(() => undefined);
      throw toFailure(error, home);
    }
  });

async function checkStore(input: unknown, { home, store }: Pick<Dependencies, 'home' | 'store'>): Promise<void> {
  const wanted = (input as Partial<PoolInput> | undefined)?.store;
  if (wanted === undefined) return;
  const own = await store.id();
  if (wanted === own) return;
  const fix = 'start the worker with the CAMPAIGN_HOME of that store, or with another CAMPAIGN_POOL';
  throw new OutsideFailure(
    'WrongStore',
    `the step needs store ${wanted}, and this worker has store ${own} in ${home}; ${fix}`,
  );
}

/** Number of failures in a row, each within SOON_MS of its start, after which a worker stops. */
const FAULTS = 3;
const SOON_MS = 120_000;

/** Wraps activities to count failures in a row. Calls `onFaulty` once, with the reason why the worker should stop. */
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
      // Other failures are caused by a service, by the input or by single rollouts, and not by this worker.
      if (error instanceof ApplicationFailure && retryOf(error.type) === 'own' && error.type !== 'RolloutsBroken') {
        faults = now() - begun < SOON_MS ? faults + 1 : 0;
        const last = `the last with ${error.type}: ${error.message}`;
        if (faults === FAULTS) onFaulty(`${FAULTS} steps in a row failed soon after they began, ${last}`);
      }
      throw error;
    }
  });
}
