/**
 * A campaign at full size on the dev server: 10 capabilities of 40 steps with every step a candidate, 5 rounds of synthesis each, and arms that
 * train for all their steps together. Invariant: no payload grows with the campaign, and it ends.
 */
import { temporal } from '@temporalio/proto';
import type { TestWorkflowEnvironment } from '@temporalio/testing';
import { createHash } from 'node:crypto';
import { summaryOf } from '../../src/training/result';
import type { RollOutInput } from '../../src/activities/types';
import type { ArtifactRef } from '../../src/domain/artifacts';
import { calibrate, type CalibrationReport } from '../../src/domain/calibration';
import type { Campaign } from '../../src/domain/campaign';
import type { Candidate } from '../../src/domain/capability';
import { languageModelSchema } from '../../src/domain/endpoints';
import type { FixedPolicy, RolloutSummary } from '../../src/domain/rollout';
import { workflowIds } from '../../src/workflows/messages';
import { devServer, quiet, start, withWorkers } from './environment';
import { config, failure, fakeActivities, POOL } from './fake-activities';

jest.setTimeout(900_000);
quiet();
let env: TestWorkflowEnvironment;
beforeAll(async () => {
  env = await devServer();
});
afterAll(() => env?.teardown());

const LARGEST_PAYLOAD = 128 * 1024;
/** What gRPC takes in one message. */
const LARGEST_PAGE = 4 * 1024 * 1024;
/** Of Temporal's 50 MB. */
const LARGEST_HISTORY = 10 * 1024 * 1024;

const BASE = 'Qwen3-30B-A3B-Instruct-2507@0123456789ab';
const CAPABILITIES = 10;
const STEPS = 40;
/** That a search finds. */
const PROMPTS = 40;
/** One more, whose environment is never within the bands. */
const FAILING = 'handle_several_requests_without_loss';
const names = Array.from(
  { length: CAPABILITIES },
  (_, n) => `recognise_and_refuse_forbidden_${'abcdefghij'[n]}_orders`,
);

const artifact = (name: string, mediaType = 'application/vnd.campaign.folder+json'): ArtifactRef => {
  const sha256 = createHash('sha256').update(name).digest('hex');
  return { uri: `artifact-tree:${sha256}`, sha256, bytes: 123_456_789, mediaType };
};
const words = (characters: number): string =>
  'what the agent says “here” 🙂 and why.\n'.repeat(characters).slice(0, characters);
const adapter = (name: string): FixedPolicy => ({ base: BASE, adapters: [{ ref: artifact(name), weight: 1 }] });

const candidate = (name: string): Candidate => ({
  name,
  definition: words(600),
  examples: Array.from({ length: 8 }, (_, n) => artifact(`${name} ${n}`).sha256),
});

/** Of real groups in four branches, all of them too hard or within the bands. */
function calibrationOf(campaign: Campaign, accepted: boolean): CalibrationReport {
  const groups = Array.from({ length: campaign.calibration.seeds }, (_, seed) => ({
    branch: `a_branch_of_the_instances_${seed % 4}`,
    rewards: Array.from({ length: 16 }, (_, n) => ((seed + n) % (accepted ? 3 : 40) === 0 ? 1 : 0)),
  }));
  return calibrate({ groups, bands: campaign.calibration, confidence: 0.95 });
}

/** Success rises with every part of a sum, so that the greedy way goes to its end. */
const summary = ({ purpose, title }: Pick<RollOutInput, 'purpose' | 'title'>): RolloutSummary => {
  const rate = 0.3 + 0.0123456789 * title.split('+').length;
  return {
    ...{ ref: artifact(title, 'application/jsonl'), purpose, title },
    ...{ scored: 198, broken: 2, meanReward: rate, successRate: rate },
    branches: Object.fromEntries(
      Array.from({ length: 4 }, (_, n) => [
        `a_branch_of_the_instances_${n}`,
        { scored: 49, meanReward: rate, successRate: rate },
      ]),
    ),
    ...{ promptTokens: 1_234_567, completionTokens: 123_456, seconds: 1234.567890123 },
    errors: { PolicyServerUnavailable: 1, EnvironmentDied: 1 },
    stopReasons: { user_stop: 150, max_steps: 40, context: 8 },
  };
};

const campaign = config({
  name: 'full-size',
  baseModel: { path: '/models/Qwen3-30B-A3B-Instruct-2507' },
  selection: { maxCandidates: CAPABILITIES + 1 },
  approval: { capabilities: true, environments: true },
  calibration: { maxRounds: 5 },
  training: { steps: STEPS, checkpointEvery: 1 },
  arms: [
    { kind: 'grpo_target' },
    { kind: 'environments' },
    { kind: 'environments', name: 'one', from: { capability: names[0] } },
    { kind: 'environments', name: 'brought', from: { folder: '/modules' } },
    { kind: 'environments', name: 'unfit', from: { folder: '/unfit' } },
    { kind: 'gepa', reflection: languageModelSchema.parse({ url: 'http://127.0.0.1:2/v1', model: 'm' }) },
    { kind: 'grpo_target', name: 'failing_on_the_target' },
  ],
});

function fullSize(): ReturnType<typeof fakeActivities> {
  const selected = [...names, FAILING].map((name) => ({ candidate: candidate(name), votes: 10 }));
  const reports = { accepted: calibrationOf(campaign, true), missed: calibrationOf(campaign, false) };
  /** By sha256. */
  const titles = new Map<string, string>();
  const fakes = fakeActivities({
    prepare: async () => ({
      pool: POOL,
      base: BASE,
      target: { name: 'a_target_of_some_size', version: artifact('target').sha256 },
      plan: artifact('plan', 'application/json'),
      tasks: { train: 400, validation: 60, router: 200, test: 200 },
    }),
    discover: async () => ({ ref: artifact('candidates', 'application/json'), selects: 'by labels' }),
    label: async ({ pass }) => {
      if (pass === 9) throw failure('AnswerInvalid', words(2_000));
      return artifact(`labels-${pass}`, 'application/json');
    },
    select: async () => ({ ref: artifact('selection', 'application/json'), selected }),
    synthesize: async ({ candidate: { name }, round }) => artifact(`${name} ${round}`, 'text/javascript'),
    selfTest: async ({ module }) =>
      module.sha256 === artifact('unfit').sha256
        ? { passed: false, findings: Array.from({ length: 10 }, () => words(500)) }
        : { passed: true, findings: [] },
    takeModules: async ({ folder }) =>
      (folder === '/unfit' ? ['unfit'] : names).map((name) => ({ file: `${name}.js`, module: artifact(name) })),
    rollOut: async (input) => {
      const made = summary(input);
      titles.set(made.ref.sha256, made.title);
      return made;
    },
    calibrate: async ({ rollouts }) => {
      const title = titles.get(rollouts.sha256)!;
      return !title.startsWith(FAILING) && /round 5$/.test(title) ? reports.accepted : reports.missed;
    },
  });
  fakes.activities.train = async ({ name, training }) => {
    if (name === 'failing_on_the_target') throw failure('Diverged', words(2_000));
    const { steps, groupsPerStep, groupSize } = training;
    return summaryOf(fakes.store, {
      ...{ steps, rollouts: steps * groupsPerStep * groupSize, brokenRollouts: 12 },
      ...{ promptTokens: 123_456_789, completionTokens: 12_345_678 },
      metrics: artifact(`metrics of ${name}`, 'application/jsonl'),
      checkpoints: Array.from({ length: steps }, (_, n) => ({ step: n + 1, policy: adapter(`${name}-${n + 1}`) })),
    });
  };
  fakes.activities.searchPrompt = async ({ name, rollouts }) =>
    summaryOf(fakes.store, {
      ...{ steps: PROMPTS, rollouts, brokenRollouts: 0, promptTokens: 1, completionTokens: 1 },
      metrics: artifact(`metrics of ${name}`),
      checkpoints: Array.from({ length: PROMPTS }, (_, n) => ({
        ...{ step: n + 1, rollouts: ((n + 1) * rollouts) / PROMPTS },
        policy: { base: BASE, adapters: [], prompt: { text: words(6_000), place: 'before' } },
      })),
    });
  return fakes;
}

const bytesIn = (json: unknown): number => Buffer.byteLength(JSON.stringify(json));

interface Sizes {
  largest: { bytes: number; of: string };
  largestPage: number;
  bytes: number;
}

/** Of a workflow's history, as the server hands it out. */
async function sizesOf(workflowId: string): Promise<Sizes> {
  const sizes: Sizes = { largest: { bytes: 0, of: '' }, largestPage: 0, bytes: 0 };
  const { GetWorkflowExecutionHistoryResponse: Response } = temporal.api.workflowservice.v1;
  let nextPageToken: Uint8Array = new Uint8Array();
  do {
    const execution = { workflowId };
    const page = await env.client.workflowService.getWorkflowExecutionHistory({
      ...{ namespace: env.namespace ?? 'default', execution, nextPageToken },
    });
    const bytes = Response.encode(page).finish().length;
    sizes.bytes += bytes;
    sizes.largestPage = Math.max(sizes.largestPage, bytes);
    for (const event of page.history?.events ?? [])
      for (const payload of payloadsIn(event))
        if (payload > sizes.largest.bytes)
          sizes.largest = { bytes: payload, of: `${workflowId}, event ${event.eventId}` };
    nextPageToken = page.nextPageToken;
  } while (nextPageToken.length > 0);
  return sizes;
}

/** Payloads, and texts of failures. */
function payloadsIn(value: unknown): number[] {
  if (typeof value === 'string') return [Buffer.byteLength(value)];
  if (typeof value !== 'object' || value === null) return [];
  const { data, metadata } = value as { data?: unknown; metadata?: unknown };
  if (data instanceof Uint8Array && metadata) return [data.length];
  return value instanceof Uint8Array ? [value.length] : Object.values(value).flatMap(payloadsIn);
}

/** Fails where the workflow's code can't go on: it would be tried for ever. */
async function stuck({ workflowId }: { workflowId: string }): Promise<never> {
  for (;;) {
    const { raw, status } = await env.client.workflow.getHandle(workflowId).describe();
    const { attempt } = raw.pendingWorkflowTask ?? {};
    if ((attempt ?? 0) > 5) throw new Error(`the campaign goes on no more: its code has failed ${attempt} times`);
    if (status.name !== 'RUNNING') return new Promise(() => undefined);
    await new Promise((resolve) => setTimeout(resolve, 1_000));
  }
}

test('no payload of a campaign at full size is large, and it ends', async () => {
  const answers: { bytes: number; of: string }[] = [];
  const { campaign: idOf, capability, arm } = workflowIds;
  const id = idOf(campaign.name);
  const capabilities = [...names, FAILING].map((name) => capability(id, name));
  const workflows = [id, ...capabilities, ...campaign.arms.map(({ kind, name }) => arm(id, name ?? kind))];
  const ask = async (workflowId: string, query: string): Promise<{ waiting?: { of: string } } | null> => {
    const answer = await env.client.workflow
      .getHandle(workflowId)
      .query<{ waiting?: { of: string } } | null>(query)
      .catch(() => null);
    answers.push({ bytes: bytesIn(answer), of: `${query} of ${workflowId}` });
    return answer;
  };
  const approved = new Set<string>();
  const { activities, seen } = fullSize();
  const result = await withWorkers(env, activities, async () => {
    const handle = await start(env, { campaign });
    const ended = Promise.race([handle.result(), stuck(handle)]).finally(() => approved.add('all'));
    while (!approved.has('all') && approved.size <= CAPABILITIES) {
      for (const workflowId of [id, ...capabilities].filter((one) => !approved.has(one))) {
        const of = (await ask(workflowId, 'approval'))?.waiting?.of;
        if (of === undefined) continue;
        await env.client.workflow.getHandle(workflowId).executeUpdate('decide', { args: [{ kind: 'approve', of }] });
        approved.add(workflowId);
      }
    }
    const completed = await ended;
    for (const workflowId of workflows) await ask(workflowId, 'progress');
    return completed;
  });
  expect(result.status).toBe('completed');
  const { capabilities: rows = [], arms = [], router, selection } = seen.record!;
  expect(rows.map(({ status }) => status)).toEqual([...names.map(() => 'trained'), 'not_calibrated']);
  expect(rows.map(({ rounds }) => rounds.length)).toEqual(rows.map(() => 5));
  expect(rows[0]!.trained!.iterations).toHaveLength(STEPS);
  expect(arms.map(({ name, iterations }) => [name, iterations?.length])).toEqual([
    ['grpo_target', (CAPABILITIES + 1) * STEPS],
    ['environments', CAPABILITIES * STEPS],
    ['one', CAPABILITIES * STEPS],
    ['brought', (CAPABILITIES + 1) * STEPS],
    ['unfit', undefined],
    ['gepa', PROMPTS],
    ['failing_on_the_target', undefined],
  ]);
  const { groupsPerStep, groupSize } = campaign.training;
  expect(arms[0]!.best!.rollouts).toBeLessThanOrEqual(CAPABILITIES * STEPS * groupsPerStep * groupSize);
  expect([router!.sums.length, router!.outcomes.length]).toEqual([45 + 1, 1 + 10 + 45 + 1]);
  expect(selection!.failedPasses).toHaveLength(1);
  expect(selection!.selected[0]!.candidate).toEqual(candidate(names[0]!));

  const sizes = new Map<string, Sizes>();
  for (const workflowId of workflows) sizes.set(workflowId, await sizesOf(workflowId));
  const largest = [...[...sizes.values()].map((one) => one.largest), ...answers].sort((a, b) => b.bytes - a.bytes);
  expect(largest.filter(({ bytes }) => bytes >= LARGEST_PAYLOAD)).toEqual([]);
  expect(Math.max(...[...sizes.values()].map((one) => one.largestPage))).toBeLessThan(LARGEST_PAGE);
  expect(Math.max(...[...sizes.values()].map((one) => one.bytes))).toBeLessThan(LARGEST_HISTORY);
});
