/**
 * Workers that are started by hand, through the real command line. One whose policy server is away or has another base model, or whose store is
 * another home's, plays nothing. Operators see every metric that an alert rule names, and traces from the command down to the activities, without
 * a key or a word of a conversation in them. Two whole campaigns of two homes on one Temporal server are a scenario of
 * test/faults.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { json } from 'node:stream/consumers';
import { setTimeout as sleep } from 'node:timers/promises';
import { parse } from 'yaml';
import { freePort } from '../../src/cli/ports';
import { type Home, homeAt } from '../../src/cli/project';
import type { Snapshot } from '../../src/cli/watch/snapshot';
import type { FailureType } from '../../src/domain/failures';
import { baseModel, command, commandWith, reportOf, repository, writeCampaign } from '../support/campaign-run';
import { makeRandomModel, python, startEmbeddedServer } from '../support/embedded-server';
import { rolloutsIn, scoredIn } from '../support/faults-checks';
import { startLoopback } from '../support/loopback';
import { atEnd } from '../support/opened';
import { temporaryFolder } from '../support/temporary-folder';
import { serverForTests } from '../workflows/environment';
import { shopPlugin } from '../support/kinds';

jest.setTimeout(15 * 60_000);
const folder = temporaryFolder();
const rules = join(repository, 'deploy', 'alerts.yaml');
const TASKS = 20;
const KEY = 'key-of-the-policy-server';

const env = serverForTests();

interface Span {
  name: string;
  traceId: string;
  spanId: string;
  parentSpanId?: string;
}

/** Takes spans as an OpenTelemetry collector does. */
async function collector(): Promise<{ url: string; spans: Span[] }> {
  const spans: Span[] = [];
  const { url, close } = await startLoopback(async (asked, answer) => {
    const { resourceSpans } = (await json(asked)) as { resourceSpans: { scopeSpans: { spans: Span[] }[] }[] };
    spans.push(...resourceSpans.flatMap(({ scopeSpans }) => scopeSpans.flatMap((scope) => scope.spans)));
    answer.end('{}');
  });
  atEnd(close);
  return { url, spans };
}

async function worker(
  kind: 'control' | 'rollouts',
  home: Home,
  settings: Record<string, string>,
  options = ['--plugin', shopPlugin],
) {
  const port = await freePort();
  const child = spawn(process.execPath, [join(repository, 'bin/campaign'), 'worker', '--queues', kind, ...options], {
    cwd: repository,
    env: {
      ...process.env,
      TEMPORAL_ADDRESS: env().address,
      CAMPAIGN_HOME: home.root,
      CAMPAIGN_PYTHON: python,
      CAMPAIGN_MODEL: baseModel,
      CAMPAIGN_METRICS: `127.0.0.1:${port}`,
      POLICY_SERVER_API_KEY: KEY,
      ...settings,
    },
    stdio: ['pipe', 'pipe', 'pipe'],
  });
  let log = '';
  child.stderr.on('data', (chunk: Buffer) => (log += chunk.toString()));
  const ended = once(child, 'close');
  const stop = () => {
    child.stdin.end();
    return ended;
  };
  atEnd(stop);
  const metrics = async () => (await fetch(`http://127.0.0.1:${port}/metrics`)).text();
  for await (const line of createInterface({ input: child.stdout })) {
    const ready = JSON.parse(line) as { taskQueues?: string[]; store?: string };
    if (ready.taskQueues !== undefined) return { ready, log: () => log, stop, metrics };
  }
  throw new Error(`the ${kind} worker ended before it was ready: ${log}`);
}

async function until<Seen>(look: () => Promise<Seen>, holds: (seen: Seen) => boolean): Promise<Seen> {
  for (;;) {
    const seen = await look();
    if (holds(seen)) return seen;
    await sleep(500);
  }
}

/** Returns the counters of campaigns and the SDK's histograms and counters that the rules read. */
function metricsOfRules(): string[] {
  const { groups } = parse(readFileSync(rules, 'utf8')) as { groups: { rules: { expr: string }[] }[] };
  const exprs = groups.flatMap((group) => group.rules.map(({ expr }) => expr));
  const names = exprs.flatMap((expr) => expr.match(/\b(campaign|temporal)_\w+/g) ?? []);
  return [...new Set(names.map((name) => name.replace(/_bucket$/, '')))];
}

test('workers that must not play say why and play nothing; operators see what the others do', async () => {
  const [home, other] = [homeAt(join(folder, 'home-of-started')), homeAt(join(folder, 'home-of-nobody'))];
  const [file, random] = [join(folder, 'seen.yaml'), join(folder, 'models', 'random')];
  const sizes = `rollouts: { tasks: ${TASKS}, perTask: 1 }\nvalidation: { targetTasks: 4 }\n`;
  writeCampaign({ file, name: 'seen', lines: `${sizes}workers: { pool: by-hand }\n` });
  makeRandomModel(random);
  const wrong = await startEmbeddedServer({ model: random });
  atEnd(wrong.stop);
  const right = await startEmbeddedServer({ model: baseModel });
  atEnd(right.stop);
  const traces = await collector();
  const traced = { OTEL_EXPORTER_OTLP_ENDPOINT: traces.url };
  const at = ['--temporal-address', env().address];
  const seen = async () => JSON.parse(await command(home, 'status', 'seen', '--json', ...at)) as Snapshot;
  expect(await command(home, 'run', file, '--detach', '--until', 'rollouts', ...at)).toMatch(
    /campaign seen started; [^]*\nnone of the control workers of .*home-of-started \(campaign-control-[0-9a-f]{12}\) runs now/,
  );
  const plain = await worker('control', home, {}, []);
  const refused = await until(seen, ({ status }) => status !== 'RUNNING');
  expect(refused).toMatchObject({ status: 'FAILED', failure: expect.stringContaining('start it with --plugin') });
  await plain.stop();
  await commandWith({ ...process.env, ...traced }, home, 'run', file, '--detach', '--until', 'rollouts', ...at);
  const control = await worker('control', home, traced);
  const campaign = (holds: (seen: Snapshot) => boolean) =>
    until(seen, (now) => {
      if (!holds(now) && now.status !== 'RUNNING') throw new Error(`the campaign ended as ${now.status} before`);
      return holds(now);
    });
  const queue = 'campaign-rollouts-by-hand';
  const waiting = await campaign(({ activities }) => activities.some(({ type }) => type === 'checkBase'));
  expect(waiting.activities).toMatchObject([{ state: 'scheduled', queue }]);

  const playing = (of: Home, url: string) =>
    worker('rollouts', of, { ...traced, CAMPAIGN_POOL: 'by-hand', POLICY_SERVER_URL: url });
  /** Of the one step that there is, what it fails for on the only worker. */
  const failure = async (type: FailureType): Promise<string | undefined> =>
    (await campaign(({ activities: [step] }) => step?.lastFailureType === type)).activities[0]?.lastFailure;
  const lost = await playing(home, 'http://127.0.0.1:1');
  await failure('PolicyServerUnavailable');
  const ofLost = await until(lost.metrics, (seen) => seen.includes('activity_execution_failed'));
  await lost.stop();
  expect(lost.log()).toContain("type: 'PolicyServerUnavailable'");

  const stranger = await playing(other, right.url);
  expect(stranger.ready).toMatchObject({ taskQueues: [queue] });
  expect(await failure('WrongStore')).toContain(`this worker has store ${stranger.ready.store} in ${other.root}`);
  await stranger.stop();
  const misled = await playing(home, wrong.url);
  expect(await failure('WrongBaseModel')).toContain(`serves ${wrong.base}, and the campaign wants ${right.base}`);
  await misled.stop();
  expect((await rolloutsIn(home)).size).toBe(0);

  const rollouts = await playing(home, right.url);
  expect((await campaign(({ status }) => status !== 'RUNNING')).status).toBe('COMPLETED');
  expect((await rolloutsIn(home)).size).toBe(TASKS);
  expect((await rolloutsIn(other)).size).toBe(0);
  expect(reportOf(home, 'seen').campaign.baseModel).toBe(right.base);
  const told = await rollouts.metrics();
  const scored = [...told.matchAll(/^campaign_rollouts_total\{(.*outcome="scored".*)\} (\d+)$/gm)];
  expect(scored.reduce((all, [, , n]) => all + Number(n), 0)).toBeGreaterThanOrEqual(TASKS);
  for (const [, labels] of scored) expect(labels).toMatch(/campaign="seen",cause="",/);

  // A workflow whose code fails.
  const bad = await env().client.workflow.start('campaignRun', {
    workflowId: 'bad',
    taskQueue: control.ready.taskQueues![0]!,
    args: [{}],
  });
  const ofControl = await until(control.metrics, (seen) => seen.includes('workflow_task_execution_failed'));
  await bad.terminate();
  const exposed = new Set([...`${ofLost}${told}${ofControl}`.matchAll(/^# TYPE (\S+)/gm)].map(([, name]) => name));
  // No language model is paid in this campaign.
  const named = metricsOfRules().filter((name) => name !== 'campaign_spent_microdollars_total');
  expect(named.length).toBeGreaterThan(3);
  expect(named.filter((name) => !exposed.has(name))).toEqual([]);

  await Promise.all([control.stop(), rollouts.stop()]);
  const { spans } = traces;
  const span = (name: string): Span => {
    const found = spans.find((one) => one.name === name);
    if (!found) throw new Error(`no span ${name} among ${[...new Set(spans.map((one) => one.name))].join(', ')}`);
    return found;
  };
  const parentOf = ({ parentSpanId }: Span) => spans.find(({ spanId }) => spanId === parentSpanId)?.name;
  const workflow = span('RunWorkflow:campaignRun');
  expect(parentOf(workflow)).toBe('StartWorkflow:campaignRun');
  const batch = span('RunActivity:rollOut');
  expect([parentOf(batch), batch.traceId]).toEqual(['StartActivity:rollOut', workflow.traceId]);

  const logs = [lost, stranger, misled, control, rollouts].map(({ log }) => log());
  const everything = [...logs, JSON.stringify(spans), ofLost, told, ofControl].join('\n');
  expect(everything).not.toContain(KEY);
  for (const { messages } of await scoredIn(home))
    for (const { content } of messages) if (content && content.length > 20) expect(everything).not.toContain(content);
});
