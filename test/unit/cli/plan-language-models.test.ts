/** What language models will be asked, counted before anything is; and doctor's look at them. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { campaignFileSchema } from '../../../src/cli/campaign-schema';
import { checkKeys, checkLanguageModels, languageModelsOf } from '../../../src/cli/checks/language-models';
import { languageModelLines } from '../../../src/cli/plan/text';
import { plannedQuestions } from '../../../src/cli/plan/language-models';
import { trajectoryTokens } from '../../../src/cli/plan/rates';
import { homeAt } from '../../../src/cli/project';
import { openFolderStore } from '../../../src/artifacts/folder-store';
import type { Purpose } from '../../../src/domain/rollout';
import { registry } from '../../../src/registry';
import { completeReport } from '../../../src/report/render';
import { type ChatServer, startChatServer } from '../../support/chat-server';
import { answered, streamed } from '../../support/model-endpoint';
import { reportFixture } from '../../support/report-fixture';
import { scoredRollout } from '../../support/scored-rollout';

let server: ChatServer;
beforeEach(async () => (server = await startChatServer(streamed('OK'))));
afterEach(() => server.close());

const price = { input: 1, cachedInput: 0.1, output: 10 };
const model = (more: object = {}) => ({ kind: 'llm', url: server.url, model: 'm', ...more });
const campaign = (parts: object, more: object = {}) =>
  campaignFileSchema(registry).parse({
    ...{ name: 'x', target: { kind: 'builtin', name: 'shop' }, baseModel: { path: '/base' } },
    ...{ selection: { passes: 10, maxCandidates: 10 }, calibration: { maxRounds: 5 } },
    ...parts,
    ...more,
  });
const description = { name: 'x', version: '1', policy: 'p'.repeat(3998), tools: [], maxSteps: 9, hasReference: false };
const trajectory = { low: 500, high: 1000, basis: 'assumed', source: 'test' } as const;
const planOf = (parts: object, more: object = {}) =>
  plannedQuestions({
    campaign: campaign(parts, more),
    rollouts: 400,
    capabilities: 3,
    purposes: [],
    description,
    trajectory,
  });
const asked = (parts: object) =>
  Object.fromEntries(planOf(parts).questions.map(({ step, requests }) => [step, [requests.low, requests.high]]));

describe('the plan', () => {
  test('counts chunks, passes and rounds; a quarter more are asked to mend their answer', () => {
    // 200,000 to 400,000 tokens of trajectories in chunks of 60,000; at most 40 trajectories a labeling question.
    expect(asked({ analyst: model() })).toEqual({ discovery: [4 + 1, 1.25 * 8], labels: [100, 125] });
    expect(
      asked({ analyst: model({ chunkTokens: 1_000_000, contextTokens: 2_000_000, labelsPerChunk: 400 }) }),
    ).toEqual({
      discovery: [1, 1],
      labels: [10, 13],
    });
    expect(asked({ analyst: model({ contextTokens: 40_000, maxTokens: 10_000 }) }).labels).toEqual([100, 213]);
    // At most five rounds of each.
    expect(asked({ synthesizer: model() })).toEqual({ environments: [3 * 2, Math.round(15 * 2 * 1.25)] });
    expect(asked({ synthesizer: model({ attacks: 0 }) })).toEqual({ environments: [3, 19] });
    expect(planOf({})).toMatchObject({ questions: [] });
    expect(planOf({})).not.toHaveProperty('budget');
  });

  test('counts what users and judges are asked in the rollouts that are planned', () => {
    const spec = (more: object = {}) => ({ url: server.url, model: 'm', ...more });
    const target = { kind: 'process', command: ['x'], user: spec({ price }), judge: spec() };
    const rollouts = (purpose: Purpose, low: number, high = low) =>
      ({ stage: 'rollouts', purpose, kind: 'rollout', rollouts: { low, high } }) as const;
    const purposes = [
      rollouts('base_rollouts', 100),
      rollouts('test', 50, 60),
      rollouts('calibration', 900),
      rollouts('held_out', 40),
    ];
    const of = (more: object = {}) =>
      plannedQuestions({
        campaign: campaign({ target, arms: [] }, more),
        rollouts: 100,
        capabilities: 1,
        purposes,
        trajectory,
      });
    const { questions, budget } = of({ budget: { tokens: 1000 } });
    expect(questions).toMatchObject([
      { field: 'target.user', step: 'rollouts', requests: { low: 150 * 2, high: 200 * 12 } },
      { field: 'target.judge', step: 'rollouts', requests: { low: 150, high: 200 * 5 } },
    ]);
    expect(questions[0]!.dollars!.low).toBeCloseTo((300 * 800 * 1 + 300 * 15 * 10) / 1e6, 9);
    expect(questions[1]).not.toHaveProperty('dollars');
    expect(budget).toMatch(/^budget\.tokens is 1000: less than what is planned/);
    expect(languageModelLines(of()).join('\n')).not.toContain('shown to them');
  });

  test('counts the target and all trajectories with every pass, and dollars by the price, passes from the cache at best', () => {
    const { questions, total } = planOf({ analyst: model({ price }) });
    const labels = questions.find(({ step }) => step === 'labels')!;
    expect(labels.promptTokens.low).toBe(10 * (400 * 500 + 10 * (2000 + 1000)));
    expect(labels.completionTokens).toEqual({ low: 10 * 400 * 5 * 30, high: 1.25 * 10 * 400 * 10 * 90 });
    const { promptTokens, completionTokens, dollars } = labels;
    expect(dollars!.low).toBeCloseTo((promptTokens.low * (0.1 * 1 + 0.9 * 0.1) + completionTokens.low * 10) / 1e6);
    expect(dollars!.high).toBeCloseTo((promptTokens.high * 1 + completionTokens.high * 10) / 1e6);
    expect(total.dollars!.low).toBeCloseTo(questions.reduce((sum, one) => sum + one.dollars!.low, 0));
  });

  test.each<[object, RegExp]>([
    [{}, /^no budget: nothing limits/],
    [{ budget: { tokens: 1e9 } }, /^budget\.tokens is 1000000000: enough for all that is planned$/],
    [{ budget: { tokens: 1000 } }, /^budget\.tokens is 1000: less than what is planned; where it is spent/],
    [{ budget: { dollars: 12 } }, /^budget\.dollars is 12: enough for the lower end/],
  ])('holds the budget %j against it', (more, text) => {
    const plan = planOf({ analyst: model({ price }) }, more);
    expect(plan.budget).toMatch(text);
    expect(languageModelLines(plan).at(-1)).toBe(plan.budget);
  });

  test('says where dollars can not be counted', () => {
    const plan = planOf({ analyst: model({ price }), synthesizer: model() }, { budget: { dollars: 5 } });
    expect(plan.total).not.toHaveProperty('dollars');
    expect(plan.budget).toMatch(/^budget\.dollars is 5, and not every model has a price/);
    expect(languageModelLines(plan).join('\n')).toMatch(/synthesizer: environments .* no price\nall .* no price\n/);
  });

  test('measures trajectories in the base rollouts of an earlier campaign', async () => {
    const root = mkdtempSync(join(tmpdir(), 'plan-llm-'));
    const store = openFolderStore(join(root, 'artifacts'));
    const rollout = {
      ...scoredRollout({ name: 'r', task: 't', reward: 1 }),
      messages: [{ role: 'user', content: 'y'.repeat(4000) }],
    };
    const body = `${JSON.stringify(rollout)}\n`;
    const ref = await store.put({ key: 'r', producer: 'rollouts', inputs: [], mediaType: 'application/jsonl', body });
    const draft = reportFixture();
    const purpose = draft.rollouts!.byPurpose.find((one) => one.purpose === 'base_rollouts')!;
    purpose.scored.from = [ref];
    const found = await trajectoryTokens([completeReport(draft)], homeAt(root));
    expect(found).toMatchObject({ basis: 'measured', source: expect.stringMatching(/1 base rollouts$/) });
    // A message is shown cut to 300 characters.
    expect(found.low).toBeGreaterThan(75);
    expect(found.low).toBeLessThan(200);
    expect(await trajectoryTokens([], homeAt(root))).toMatchObject({ basis: 'assumed' });
    rmSync(root, { recursive: true });
  });
});

describe('doctor', () => {
  test('asks each model once, as a campaign will, and keeps nothing', async () => {
    const parts = campaign({ analyst: model({ temperature: 0.5 }), synthesizer: model({ model: 'n' }) });
    expect(await checkLanguageModels(parts)).toEqual([
      { name: 'language model of the analyst', ok: true, detail: `m at ${server.url} answers` },
      { name: 'language model of the synthesizer', ok: true, detail: `n at ${server.url} answers` },
    ]);
    expect(server.requests.map(({ body }) => [body['model'], body['temperature'], body['stream']]).sort()).toEqual([
      ['m', 0.5, true],
      ['n', 1, true],
    ]);
    expect(await checkLanguageModels(campaign({}))).toEqual([]);
  });

  test('names the field that mends it', async () => {
    const [gone] = await checkLanguageModels(campaign({ analyst: model({ apiKeyEnv: 'NOT_SET' }) }));
    expect(gone).toMatchObject({
      ok: false,
      detail: expect.stringMatching(/: analyst\.apiKeyEnv is NOT_SET, and this/),
    });
    server.play = answered(404, '{"error":{"message":"no such model"}}');
    const [unknown] = await checkLanguageModels(campaign({ synthesizer: model() }));
    expect(unknown).toMatchObject({ ok: false, detail: expect.stringMatching(/correct synthesizer\.model or/) });
    const unpriced = campaign({ analyst: model() }, { budget: { dollars: 3 } });
    expect(await checkLanguageModels(unpriced)).toMatchObject([
      { ok: false, detail: 'budget.dollars is 3, and analyst.price is missing' },
    ]);
  });

  test('what is known for nothing: the variables of keys', () => {
    expect(checkKeys(campaign({ analyst: model() }))).toEqual([]);
    expect(checkKeys(campaign({ analyst: model({ apiKeyEnv: 'NOT_SET' }) }))).toMatchObject([{ ok: false }]);
    expect(server.requests).toEqual([]);
  });

  test('knows the kinds that ask a language model, whatever they are called', () => {
    const { analyst, synthesizer } = campaign({ analyst: model() });
    const named = registry.analysts.map((kind) => (kind.kind === 'llm' ? { ...kind, kind: 'mine' } : kind));
    const found = languageModelsOf(
      { analyst: { ...analyst, kind: 'mine' }, synthesizer },
      { ...registry, analysts: named },
    );
    expect(found).toMatchObject([{ field: 'analyst', model: { model: 'm' } }]);
  });
});
