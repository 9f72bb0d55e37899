/**
 * How a worker is seen from outside (docs/operations.md): metrics of the SDK and of its steps at the address that CAMPAIGN_METRICS names, log lines as JSON
 * with CAMPAIGN_LOG=json, traces. Unless the operator asks there are none. Logs hold errors by type and message, never what was sent or said.
 */
import type { Context } from '@temporalio/activity';
import {
  type ActivityInterceptors,
  DefaultLogger,
  type LogEntry,
  type NativeConnection,
  Runtime,
  type WorkerOptions,
} from '@temporalio/worker';
import { statfs } from 'node:fs/promises';
import { inspect } from 'node:util';
import { plainText } from '../domain/plain-text';
import { buckets, campaignOf, counters, labelsOf, measure } from '../metrics';
import type { PolicyClient } from '../policy/client';
import { startTracing, traced } from '../tracing';

const { CAMPAIGN_METRICS: address, CAMPAIGN_LOG: format = 'text' } = process.env;
const isJson = format === 'json';

let tracing: Awaited<ReturnType<typeof startTracing>>;

/** To be called before the worker connects; gives what sends the last spans. Throws where a setting can't be kept to. */
export async function startTelemetry(queue: string): Promise<() => Promise<void>> {
  if (!isJson && format !== 'text') throw new Error(`CAMPAIGN_LOG is ${format}; give text or json`);
  const naming = { countersTotalSuffix: true, unitSuffix: true, useSecondsForDurations: true };
  const prometheus = { ...naming, histogramBucketOverrides: buckets, bindAddress: address ?? '' };
  const logger = new DefaultLogger('INFO', (entry) => process.stderr.write(isJson ? lineOf(entry) : textOf(entry)));
  try {
    Runtime.install({
      logger,
      telemetryOptions: { ...(isJson && { logging: { forward: {} } }), ...(address && { metrics: { prometheus } }) },
    });
  } catch (error) {
    const fix = 'give a free address of this machine, such as 127.0.0.1:9464';
    throw new Error(`CAMPAIGN_METRICS is ${address}: ${(error as Error).message}; ${fix}`, { cause: error });
  }
  tracing = await startTracing(`campaign-${queue}`);
  return async () => tracing?.flush();
}

/** Writes a line of the worker's own. */
export function say(level: 'WARN' | 'ERROR', message: string): void {
  const timestampNanos = BigInt(Date.now()) * 1_000_000n;
  process.stderr.write(isJson ? lineOf({ level, message, timestampNanos }) : `${plainText(message)}\n`);
}

/** As the SDK writes entries, without what a quoted error of a process or server would do to a terminal. */
const textOf = ({ level, message, timestampNanos, meta }: LogEntry): string =>
  `${plainText(`${timeOf(timestampNanos)} [${level}] ${message}${meta ? ` ${inspect(meta)}` : ''}`)}\n`;

const timeOf = (timestampNanos: bigint): string => new Date(Number(timestampNanos / 1_000_000n)).toISOString();

function lineOf({ level, message, timestampNanos, meta = {} }: LogEntry): string {
  const { workflowId: workflow, activityType: activity, error, ...rest } = meta as Record<string, unknown>;
  const time = timeOf(timestampNanos);
  const of = typeof workflow === 'string' && { ...campaignOf(workflow), workflow };
  const line = {
    time,
    level,
    message,
    ...of,
    activity,
    ...rest,
    error: error instanceof Error ? toldOf(error) : error,
  };
  return `${JSON.stringify(line, (_, value: unknown) => (typeof value === 'bigint' ? Number(value) : value))}\n`;
}

const toldOf = ({ message, stack, name, type = name }: Error & { type?: string }) => ({ type, message, stack });

/** Steps that run here, and when they had their last heartbeat. */
const running = new Map<Context, number>();

const stepInterceptors = (context: Context): ActivityInterceptors => ({
  inbound: {
    async execute(input, next) {
      measure('campaign_step_attempts', 1, { attempt: context.info.attempt === 1 ? 'first' : 'again' });
      const { heartbeat } = context;
      const beaten = () => void running.set(context, performance.now());
      beaten();
      Object.assign(context, { heartbeat: (details?: unknown) => (beaten(), heartbeat(details)) });
      try {
        return await next(input);
      } finally {
        running.delete(context);
        measure('campaign_heartbeat_age_seconds', 0);
      }
    },
  },
  outbound: { getMetricTags: (_, next) => next(labelsOf(context.info)) },
});

const LOOK_MS = 15_000;
const ACTIVITIES = 2;

/** Looks now and then at what counts nothing by itself. */
export function watch(o: {
  connection: NativeConnection;
  namespace: string;
  taskQueues: string[];
  home: string;
  client?: Pick<PolicyClient, 'reachable'>;
}): void {
  if (!address) return;
  const { connection, namespace, taskQueues, home, client } = o;
  const meter = Runtime.instance().metricMeter;
  const looks = [
    ...taskQueues.map((task_queue) => async () => {
      const asked = { namespace, taskQueue: { name: task_queue }, taskQueueType: ACTIVITIES, reportStats: true };
      const ask = () => connection.workflowService.describeTaskQueue(asked);
      const { stats } = await connection.withDeadline(Date.now() + LOOK_MS, ask);
      measure('campaign_queue_wait_seconds', Number(stats?.approximateBacklogAge?.seconds ?? 0), { task_queue }, meter);
    }),
    async () => {
      const { bavail, bsize } = await statfs(home);
      measure('campaign_disk_free_bytes', bavail * bsize, {}, meter);
    },
    async () => client && measure('campaign_policy_server_up', Number(await client.reachable()), {}, meter),
  ];
  const look = (): void => {
    for (const [{ metricMeter }, beaten] of running)
      measure('campaign_heartbeat_age_seconds', (performance.now() - beaten) / 1000, {}, metricMeter);
    // What can't be looked at keeps its figure: whoever is away has an alert of its own.
    for (const one of looks) one().catch(() => undefined);
  };
  // What was never counted is 0, not absent: rates hold from the first one on.
  for (const name of counters) measure(name, 0, {}, meter);
  setInterval(look, LOOK_MS).unref();
  look();
}

/** Of the worker's options, what makes it seen. */
export function telemetry(): Pick<WorkerOptions, 'sinks' | 'interceptors'> {
  if (!tracing) return { interceptors: { activity: [stepInterceptors] } };
  const { temporal, spanProcessor, resource } = tracing;
  const spans = (context: Context) => ({ inbound: new temporal.OpenTelemetryActivityInboundInterceptor(context) });
  const exporter = temporal.makeWorkflowExporter(spanProcessor, resource);
  return { interceptors: { activity: [spans, stepInterceptors] }, sinks: { exporter } };
}

/** The same client, whose turns are spans. */
export const tracedClient = (client: PolicyClient): PolicyClient => ({
  ...client,
  sample: (request) =>
    traced({ name: 'policy request', attributes: { 'gen_ai.operation.name': 'chat' } }, async (span) => {
      const turn = await client.sample(request);
      span?.setAttribute('gen_ai.usage.input_tokens', turn.promptIds.length);
      span?.setAttribute('gen_ai.usage.output_tokens', turn.tokenIds.length);
      return turn;
    }),
});
