/**
 * A campaign of 10 capabilities x 40 steps with 5 rounds of synthesis each. Invariant: every history stays short, and its large payloads are in the
 * artifact store.
 */
import { createHash } from 'node:crypto';
import type { RollOutInput } from '../../src/activities/types';
import type { ArtifactRef } from '../../src/domain/artifacts';
import { calibrate, type CalibrationReport } from '../../src/domain/calibration';
import type { Campaign } from '../../src/domain/campaign';
import type { Candidate } from '../../src/domain/capability';
import { languageModelSchema } from '../../src/domain/endpoints';
import type { FixedPolicy, RolloutSummary } from '../../src/domain/rollout';
import { workflowIds } from '../../src/workflows/messages';
import { serverForTests, start, timeSkipping, withWorkers } from './environment';
import { config, failure, fakeActivities, POOL } from './fake-activities';

jest.setTimeout(900_000);
const env = serverForTests(timeSkipping);

const LARGEST_PAYLOAD = 64 * 1024;
const MOST_EVENTS = 500;

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

const summary = ({ purpose, title }: Pick<RollOutInput, 'purpose' | 'title'>): RolloutSummary => {
  const rate = 0.3123456789;
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
  };
};

const campaign = config({
  name: 'full-size',
  baseModel: { path: '/models/Qwen3-30B-A3B-Instruct-2507' },
  selection: { maxCandidates: CAPABILITIES + 1 },
  calibration: { maxRounds: 5 },
  training: { steps: STEPS },
  arms: [
    { kind: 'grpo_target' },
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
    takeModules: async () => [{ file: 'unfit.js', module: artifact('unfit') }],
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
    const { steps, groupsPerStep, groupSize, checkpointEvery } = training;
    return {
      ...{ steps, rollouts: steps * groupsPerStep * groupSize, brokenRollouts: 12 },
      ...{ promptTokens: 123_456_789, completionTokens: 12_345_678 },
      metrics: artifact(`metrics of ${name}`, 'application/jsonl'),
      checkpoints: Array.from({ length: steps / checkpointEvery }, (_, n) => ({
        step: (n + 1) * checkpointEvery,
        policy: adapter(`${name}-${n + 1}`),
      })),
    };
  };
  fakes.activities.searchPrompt = async ({ name, rollouts }) => ({
    ...{ steps: PROMPTS, rollouts, brokenRollouts: 0, promptTokens: 1, completionTokens: 1 },
    metrics: artifact(`metrics of ${name}`),
    checkpoints: Array.from({ length: PROMPTS }, (_, n) => ({
      ...{ step: n + 1, rollouts: ((n + 1) * rollouts) / PROMPTS },
      policy: { base: BASE, adapters: [], prompt: { text: words(6_000), place: 'before' } },
    })),
  });
  return fakes;
}

/** The number of events of a history, and its largest payload in bytes. */
async function sizesOf(workflowId: string): Promise<{ events: number; largest: number }> {
  const { events } = await env().client.workflow.getHandle(workflowId).fetchHistory();
  return { events: events?.length ?? 0, largest: Math.max(...(events ?? []).flatMap(payloadsIn)) };
}

/** Payloads, and texts of failures. */
function payloadsIn(value: unknown): number[] {
  if (typeof value === 'string') return [Buffer.byteLength(value)];
  if (typeof value !== 'object' || value === null) return [];
  const { data, metadata } = value as { data?: unknown; metadata?: unknown };
  if (data instanceof Uint8Array && metadata) return [data.length];
  return value instanceof Uint8Array ? [value.length] : Object.values(value).flatMap(payloadsIn);
}

test('no payload of a large campaign is in a history, and no history is long', async () => {
  const { campaign: idOf, capability, arm } = workflowIds;
  const id = idOf(campaign.name);
  const { activities, seen } = fullSize();
  const result = await withWorkers(env(), activities, async () => (await start(env(), { campaign })).result());
  expect(result.status).toBe('completed');
  const { capabilities: rows = [], arms = [], router, selection } = seen.record!;
  expect(rows.map(({ status }) => status)).toEqual([...names.map(() => 'completed'), 'not_trained']);
  expect(rows.map(({ rounds }) => rounds.length)).toEqual(rows.map(() => 5));
  expect(rows[0]!.work!.iterations).toHaveLength(STEPS / campaign.training.checkpointEvery);
  expect(arms.map(({ name, work }) => [name, work?.iterations.length])).toEqual([
    ['grpo_target', ((CAPABILITIES + 1) * STEPS) / campaign.training.checkpointEvery],
    ['unfit', undefined],
    ['gepa', PROMPTS],
    ['failing_on_the_target', undefined],
  ]);
  expect(router!.policies).toHaveLength(1 + 10 + 45 + 1);
  expect(selection!.failedPasses).toHaveLength(1);
  expect(selection!.selected[0]!.candidate).toEqual(candidate(names[0]!));
  expect(JSON.stringify(seen.record).length).toBeGreaterThan(LARGEST_PAYLOAD);
  expect(JSON.stringify(arms[2]!.work?.training).length).toBeGreaterThan(LARGEST_PAYLOAD);

  for (const workflowId of [
    id,
    ...[...names, FAILING].map((name) => capability(id, name)),
    ...campaign.arms.map(({ kind, name }) => arm(id, name ?? kind)),
  ]) {
    const { events, largest } = await sizesOf(workflowId);
    expect({ workflowId, events, isShort: events < MOST_EVENTS }).toMatchObject({ isShort: true });
    expect(largest).toBeLessThan(LARGEST_PAYLOAD);
  }
});
