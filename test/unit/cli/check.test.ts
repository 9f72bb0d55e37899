/** Requirements: missing ones by name, and warnings. */
import { mkdirSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { type CheckItem, runChecks } from '../../../src/checks/check';
import { campaignFileSchema } from '../../../src/cli/campaign-schema';
import { languageModelChecks } from '../../../src/cli/check/endpoints';
import { gpuCheck, homeCheck, pythonCheck, storeCheck } from '../../../src/cli/check/machine';
import { modelChecks } from '../../../src/cli/check/model';
import { targetChecks } from '../../../src/cli/check/target';
import { homeAt, pythonPath } from '../../../src/cli/project';
import type { Campaign } from '../../../src/domain/campaign';
import type { Stage } from '../../../src/domain/work';
import { campaign as campaignCommand } from '../../support/campaign-command';
import { registry, shopCampaign } from '../../support/kinds';
import { startChatServer } from '../../support/chat-server';
import { answered, streamed } from '../../support/model-endpoint';
import { startLoopback } from '../../support/loopback';
import { closedAfterwards } from '../../support/opened';
import { newFolder } from '../../support/temporary-folder';

// Some of them start the trainer's Python several times, and torch in it: seconds each, and more on busy cores.

const home = homeAt(newFolder());
const base = resolve('models/base');
const campaign = (over: object = {}, model = newFolder()): Campaign =>
  campaignFileSchema(registry).parse({ ...shopCampaign, baseModel: { path: model }, ...over });
const vllm = (url: string, more: object = {}) => ({ policyServer: { kind: 'vllm', url, ...more } });
const program = (...command: string[]) => ({ kind: 'process', command });
const supported = (file: string) => program(process.execPath, resolve('test/support', file));

/** Returns `ok NAME`, `warning NAME` or `missing NAME` for each check. `only`: the check that is looked at. */
async function foundBy(items: CheckItem[], { until, only }: { until?: Stage; only?: string } = {}): Promise<string[]> {
  const checks = await runChecks(
    items.filter(({ name }) => name === (only ?? name)),
    { until },
  );
  return checks.map(({ name, ok, warning }) => `${warning ? 'warning' : ok ? 'ok' : 'missing'} ${name}`);
}

/** A folder with these files. */
function folderOf(files: Record<string, string>, folder = newFolder()): string {
  mkdirSync(folder, { recursive: true });
  for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, name), text);
  return folder;
}

/** An executable that prints a text. */
function programThatSays(text: string): string {
  const file = join(newFolder(), 'program');
  writeFileSync(file, `#!/bin/sh\necho '${text}'\n`, { mode: 0o755 });
  return file;
}

/** Environment variables until the end of the test. */
const setEnv = (more: NodeJS.ProcessEnv) => jest.replaceProperty(process, 'env', { ...process.env, ...more });
afterEach(() => jest.restoreAllMocks());

test.each(['s3:/wrong', 's3://bucket/x'])('a store at %s is missing', async (url) => {
  const key = { AWS_ACCESS_KEY_ID: 'x', AWS_SECRET_ACCESS_KEY: 'x' };
  setEnv({ CAMPAIGN_STORE: url, AWS_ENDPOINT_URL_S3: 'http://127.0.0.1:9', ...key });
  expect(await foundBy([storeCheck(home)])).toEqual(['missing store']);
});

describe('the machine', () => {
  const room = 1024 ** 3;
  const program = programThatSays('0, A100, 81920 MiB\n1, A100, 81920 MiB\n2, A100, 81920 MiB\n3, A100, 81920 MiB');
  const gpus = (gpuSlots: number, gpusPerTrainer: number, machine: Parameters<typeof gpuCheck>[1] = {}) =>
    gpuCheck(campaign({ workers: { gpuSlots, gpusPerTrainer } }), machine);
  const packages = '{"python": [3, 11, 1], "packages": {"torch": "2.13.0+cpu", "trl": "0.1"}}';
  const old = programThatSays('{"python": [3, 9, 1], "packages": {}}');

  test.each<[CheckItem | CheckItem[], ...string[]]>([
    [homeCheck(home, () => 1.5 * room), 'missing home folder'],
    [pythonCheck(old), 'missing Python'],
    [pythonCheck(programThatSays(packages)), 'missing Python'],
    [gpus(2, 0)],
    [gpus(1, 4, { program, visible: '0,1,2,3' }), 'ok GPUs'],
    [gpus(2, 2, { program, visible: '2,3' }), 'missing GPUs'],
  ])('%#', async (items, ...lines) => {
    expect(await foundBy([items].flat())).toEqual(lines);
  });
});

describe('a base model', () => {
  const whole = { 'config.json': '', 'model.safetensors': '', 'tokenizer.json': '' };
  test.each<[path: string, files: Record<string, string> | undefined, line: string]>([
    ['no/such/model', undefined, 'missing base model'],
    ['model', { 'config.json': '' }, 'missing base model'],
    ['model', whole, 'ok base model'],
  ])('at %s with files %j', async (path, files, line) => {
    const folder = join(newFolder(), path);
    if (files) folderOf(files, folder);
    expect(await foundBy(modelChecks(campaign({}, folder)), { only: 'base model' })).toEqual([line]);
  });

  test('a module that the base does not have is missing', async () => {
    const asked = campaign({ training: { lora: { targetModules: ['gate_proj', 'conv'] } } }, base);
    const found = await foundBy(modelChecks(asked, pythonPath(), home.root), { only: 'LoRA modules' });
    expect(found).toEqual(['missing LoRA modules']);
  });
});

describe('the target and the parts that work on it', () => {
  const given = {
    analyst: { kind: 'given', capabilities: '/no/file.json' },
    synthesizer: { kind: 'given', modules: '/no/modules' },
    arms: [{ kind: 'gepa' }],
  };
  const slow = { ...program('/bin/sh', '-c', 'sleep 20'), silenceSeconds: 1 };
  const dies = program(process.execPath, '-e', "console.error('no database'); process.exit(7)");

  test('describe themselves; what can not be asked is not held against the parts', async () => {
    const parts = ['ok analyst', 'ok synthesizer'];
    expect(await foundBy(targetChecks({ campaign: campaign(), home }))).toEqual(['ok target environment', ...parts]);
    expect(await foundBy(targetChecks({ campaign: campaign({ target: dies }), home }))).toEqual([
      'missing target environment',
      ...parts,
    ]);
  });

  test.each<[over: object, until: Stage | undefined, ...lines: string[]]>([
    [{ arms: [{ kind: 'grpo_target' }], training: { groupsPerStep: 10_000 } }, undefined, 'missing target environment'],
    [{ target: slow }, undefined, 'missing target environment'],
    [{ target: supported('two-party.mjs'), arms: [] }, undefined, 'missing analyst', 'warning synthesizer'],
    [given, 'selection', 'missing analyst', 'missing synthesizer', 'missing baseline gepa'],
    [given, 'rollouts', 'warning analyst', 'warning synthesizer', 'warning baseline gepa'],
  ])('of %j lack until %s', async (over, until, ...lines) => {
    const found = await foundBy(targetChecks({ campaign: campaign(over), home }), until && { until });
    expect(found.filter((line) => !line.startsWith('ok'))).toEqual(lines);
  });
});

describe('a vLLM server', () => {
  const model = { id: 'qwen', max_model_len: 32_768 };
  const serving = (...models: object[]) => JSON.stringify({ data: models });

  test.each<[string, status: number, page: string, found: string]>([
    ['that has all that is needed', 200, serving({ id: 'a-1', parent: 'qwen' }, model), 'ok'],
    ['of another model', 200, serving({ id: 'llama' }), 'missing'],
    ['of another context', 200, serving({ ...model, max_model_len: 4096 }), 'missing'],
    ['that is none', 200, '<html>It works!</html>', 'missing'],
  ])('%s is asked without a change', async (_what, status, page, found) => {
    const calls: string[] = [];
    const server = closedAfterwards(
      await startLoopback(({ method, url }, response) => {
        calls.push(`${method} ${url}`);
        if (url === '/health') response.end();
        else response.writeHead(status).end(page);
      }),
    );
    const items = modelChecks(campaign(vllm(server.url, { model: 'qwen' })));
    expect(await foundBy(items, { only: 'policy server' })).toEqual([`${found} policy server`]);
    expect(calls).toEqual(['GET /health', 'GET /v1/models']);
  });

  test('that does not answer', async () => {
    const unused = vllm('http://127.0.0.1:2');
    expect(await foundBy(modelChecks(campaign(unused)), { only: 'policy server' })).toEqual(['missing policy server']);
  });
});

describe('language models', () => {
  let server: Awaited<ReturnType<typeof startChatServer>>;
  beforeEach(async () => (server = closedAfterwards(await startChatServer(streamed('OK')))));
  const model = (more: object = {}) => ({ kind: 'llm', url: server.url, model: 'm', ...more });
  const found = (over: object, asks = true) => foundBy(languageModelChecks(campaign(over), { asks }));

  test('each is asked once, as a campaign will', async () => {
    expect(await found({ analyst: model({ temperature: 0.5 }), synthesizer: model({ model: 'n' }) })).toEqual([
      'ok language model of the analyst',
      'ok language model of the synthesizer',
    ]);
    expect(server.requests.map(({ body }) => [body['model'], body['temperature'], body['stream']]).sort()).toEqual([
      ['m', 0.5, true],
      ['n', 1, true],
    ]);
    expect(await found({})).toEqual([]);
  });

  test('one without its key is not asked, one that refuses or cannot be priced is missing', async () => {
    const keyless = { analyst: model({ apiKeyEnv: 'NOT_SET' }) };
    for (const asks of [true, false])
      expect(await found(keyless, asks)).toEqual(['missing language model of the analyst']);
    expect(await found({ analyst: model() }, false)).toEqual([]);
    expect(server.requests).toEqual([]);
    server.play = answered(404, '{"error":{"message":"no such model"}}');
    expect(await found({ synthesizer: model() })).toEqual(['missing language model of the synthesizer']);
    expect(await found({ analyst: model(), budget: { dollars: 3 } })).toContain(
      'missing language model of the analyst',
    );
  });
});

test('of a campaign file, everything comes at once: what is missing, and the rest as far as it goes', async () => {
  // Without Python there is no server to sample from.
  const args = ['--home', home.root, 'check', 'campaigns/smoke.yaml', '--json'];
  const { status, stdout } = await campaignCommand(args, { env: { CAMPAIGN_PYTHON: '/no/python' } });
  expect(status).toBe(1);
  const found = JSON.parse(stdout) as Record<string, object>;
  expect(found['requirements']).toContainEqual(expect.objectContaining({ name: 'Python', ok: false }));
  expect(found).toMatchObject({
    ...{ target: 'shop', findings: [], firstTurns: { problem: expect.stringContaining('Python') as string } },
    tasks: { test: 30 },
    detectable: { tasks: 30, difference: expect.any(Number) as number },
  });
  expect(found['purposes']).toContainEqual(expect.objectContaining({ purpose: 'base_rollouts' }));
});
