/** Requirements: missing ones by name, and warnings. */
import { execFileSync } from 'node:child_process';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join, resolve } from 'node:path';
import { type CheckItem, runChecks } from '../../../src/checks/check';
import { campaignFileSchema } from '../../../src/cli/campaign-schema';
import { languageModelChecks } from '../../../src/cli/check/endpoints';
import {
  buildCheck,
  curvesChecks,
  gpuCheck,
  homeCheck,
  temporaryCheck,
  memoryCheck,
  nodeCheck,
  pythonChecks,
  storeCheck,
} from '../../../src/cli/check/machine';
import { modelChecks, serverTrials, templateCheck } from '../../../src/cli/check/model';
import { bridgeChecks, targetChecks } from '../../../src/cli/check/target';
import { homeAt, pythonPath } from '../../../src/cli/project';
import type { Campaign } from '../../../src/domain/campaign';
import type { EnvironmentDescription } from '../../../src/domain/environment';
import type { Stage } from '../../../src/domain/work';
import { campaign as campaignCommand } from '../../support/campaign-command';
import { registry, shopParts } from '../../support/kinds';
import { startChatServer } from '../../support/chat-server';
import { refuse, startDialectServer } from '../../support/dialect-server';
import { answered, streamed } from '../../support/model-endpoint';
import { newFolder } from '../../support/temporary-folder';

// Some of them start the trainer's Python several times, and torch in it: seconds each, and more on busy cores.
jest.setTimeout(180_000);

const home = homeAt(newFolder());
const base = resolve('models/base');
const campaign = (over: object = {}, model = newFolder()): Campaign =>
  campaignFileSchema(registry).parse({
    name: 'x',
    ...shopParts,
    baseModel: { path: model },
    ...over,
  });
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

test.each([
  ['s3:/wrong', 'missing store'],
  ['s3://bucket/x', 'missing store'],
  [undefined, 'ok target environment'],
])('a store at %s is tried, and where it fails nobody asks the target', async (url, line) => {
  const key = { AWS_ACCESS_KEY_ID: 'x', AWS_SECRET_ACCESS_KEY: 'x' };
  if (url) setEnv({ CAMPAIGN_STORE: url, AWS_ENDPOINT_URL_S3: 'http://127.0.0.1:9', ...key });
  const items = [storeCheck(home), ...targetChecks({ campaign: campaign(), home })].slice(0, 2);
  expect(await foundBy(items)).toEqual([line]);
});

describe('the loop', () => {
  const item = (name: string, run: CheckItem['run'], needs: string[] = []): CheckItem => ({ name, run, needs });
  const gone = () => {
    throw new Error('gone\n  away');
  };

  test('leaves out what needs something that failed, and what has nothing to say', async () => {
    const items = [
      item('a', gone),
      item('b', () => 'b', ['a']),
      item('c', () => 'c', ['b']),
      item('d', () => undefined),
    ];
    expect(await runChecks([...items, item('e', () => ({ warning: 'w' }), ['d'])])).toEqual([
      { name: 'a', ok: false, detail: 'gone away' },
      { name: 'e', ok: true, warning: true, detail: 'w' },
    ]);
  });
});

describe('the machine', () => {
  const room = 1024 ** 3;
  const [bare, bridged] = [newFolder(), newFolder()];
  for (const folder of ['.venv-bridges', 'checkout/src/tau2']) mkdirSync(join(bridged, folder), { recursive: true });
  writeFileSync(join(bridged, '.venv-bridges/.installed'), '');
  const bridge = (root: string, checkout: string) =>
    bridgeChecks(campaign({ target: { kind: 'tau2', domains: ['mock'], checkout } }), { root });
  const program = programThatSays('0, A100, 81920 MiB\n1, A100, 81920 MiB\n2, A100, 81920 MiB\n3, A100, 81920 MiB');
  const gpus = (gpuSlots: number, gpusPerTrainer: number, machine: Parameters<typeof gpuCheck>[1] = {}) =>
    gpuCheck(campaign({ workers: { gpuSlots, gpusPerTrainer } }), machine);
  const packages = '{"python": [3, 11, 1], "packages": {"torch": "2.13.0+cpu", "trl": "0.1"}}';
  const old = programThatSays('{"python": [3, 9, 1], "packages": {}}');

  test.each<[CheckItem | CheckItem[], ...string[]]>([
    [nodeCheck('20.18.3'), 'missing Node'],
    [memoryCheck(4 * room), 'missing memory'],
    [buildCheck(bare), 'missing build'],
    [homeCheck(home, campaign(), () => 1.5 * room), 'missing home folder'],
    [homeCheck(home, campaign(vllm('http://gpu:8000')), () => 44 * room), 'warning home folder'],
    [temporaryCheck(join(bare, 'none')), 'missing temporary files'],
    [pythonChecks(old), 'missing Python'],
    [pythonChecks(programThatSays(packages)), 'ok Python', 'missing Python packages'],
    [gpus(2, 0)],
    [gpus(1, 4, { program, visible: '0,1,2,3' }), 'ok GPUs'],
    [gpus(2, 2, { program, visible: '2,3' }), 'missing GPUs'],
    [bridge(bare, join(bare, 'checkout')), 'missing bridge', 'missing tau2-bench checkout'],
    [bridge(bridged, join(bridged, 'checkout')), 'ok bridge', 'ok tau2-bench checkout'],
    [bridgeChecks(campaign())],
  ])('%#', async (items, ...lines) => {
    expect(await foundBy([items].flat())).toEqual(lines);
  });

  test('the package of training.reportTo is needed, with the command that installs it', async () => {
    const python = programThatSays('{"python": [3, 12, 0], "packages": {"tensorboard": "2.21.0", "wandb": null}}');
    const checksOn = (reportTo: string) => curvesChecks(campaign({ training: { reportTo } }), python);
    expect(checksOn('none')).toEqual([]);
    expect(await foundBy(checksOn('tensorboard'))).toEqual(['ok training.reportTo']);
    const [lack] = await runChecks(checksOn('wandb'));
    expect(lack).toMatchObject({
      ok: false,
      fix: expect.stringContaining(`\`${python} -m pip install wandb\``) as string,
    });
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

  describe('and the modules that a LoRA trains:', () => {
    const moe = newFolder();
    beforeAll(() => {
      const save = 'from trainer.tests.conftest import save_tiny_model as save; save(sys.argv[1], kind="moe")';
      execFileSync(pythonPath(), ['-c', `import sys; ${save}`, moe]);
    });
    const experts = ['q_proj', 'experts'];
    const served = vllm('http://127.0.0.1:8000');

    test.each<[model: string, modules: string[], over: { dropout?: number; policyServer?: object }, status: string]>([
      [base, ['gate_proj', 'conv'], {}, 'missing'],
      [moe, experts, { ...served, dropout: 0.1 }, 'missing'],
    ])('%s, %j with %j', async (model, targetModules, { dropout = 0, ...over }, status) => {
      const asked = campaign({ training: { lora: { targetModules, dropout } }, ...over }, model);
      const found = await foundBy(modelChecks(asked, pythonPath(), home.root), { only: 'LoRA modules' });
      expect(found).toEqual([`${status} LoRA modules`]);
    });
  });

  describe('its chat template shows the target’s tools', () => {
    const tool = { name: 'find', description: '', parameters: { type: 'object' as const } };
    const config = { 'config.json': '{}' };
    const configured = { ...config, 'tokenizer_config.json': '{"chat_template": "{{ messages }} {{ tools }}"}' };
    const silent = { ...configured, 'chat_template.jinja': '{{ messages[0].content }} my tools_of_trade' };
    test.each<[files: Record<string, string>, tools: object[], over: object, ...lines: string[]]>([
      [{}, [tool], {}],
      [config, [], {}, 'missing chat template'],
      [configured, [tool], {}, 'ok chat template'],
      [silent, [], {}, 'ok chat template'],
      [silent, [tool], {}, 'missing chat template'],
      [silent, [tool], vllm('http://127.0.0.1:2')],
    ])('%j with tools %j, %j', async (files, tools, over, ...lines) => {
      const describe = async () => ({ tools }) as EnvironmentDescription;
      const asked = campaign(over, folderOf(files));
      expect(await foundBy([templateCheck(asked, describe)])).toEqual(lines);
    });
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
    [given, 'selection', 'missing analyst', 'missing synthesizer', 'missing arm gepa'],
    [given, 'rollouts', 'warning analyst', 'warning synthesizer', 'warning arm gepa'],
  ])('of %j lack until %s', async (over, until, ...lines) => {
    const found = await foundBy(targetChecks({ campaign: campaign(over), home }), until && { until });
    expect(found.filter((line) => !line.startsWith('ok'))).toEqual(lines);
  });
});

describe('a vLLM server', () => {
  const model = { id: 'qwen', max_model_len: 32_768 };
  const serving = (...models: object[]) => JSON.stringify({ data: models });

  test('is tried with adapters of the campaign’s rank and with their sum', async () => {
    const server = await startDialectServer();
    const asked = campaign(vllm(server.url), base);
    asked.training.lora.targetModules = ['q_proj'];
    const check = async (most: number) => {
      server.load = ({ lora_name: name, lora_path: path }, response) => {
        const { r } = JSON.parse(readFileSync(join(String(path), 'adapter_config.json'), 'utf8')) as { r: number };
        const message = `Call to add_lora method failed: LoRA rank ${r} is greater than max_lora_rank ${most}.`;
        if (r > most) return refuse(500, { message })({}, response);
        server.adapters.set(String(name), String(path));
        response.end('ok');
      };
      return foundBy(serverTrials(asked, home), { only: 'adapters' });
    };
    try {
      server.root = '/models/mine';
      expect([...server.adapters.keys()]).toEqual([]);
      expect(await check(32)).toEqual(['warning adapters']);
      expect(await check(8)).toEqual(['missing adapters']);
    } finally {
      await server.close();
    }
  }, 240_000);

  test.each<[string, status: number, page: string, found: string]>([
    ['that has all that is needed', 200, serving({ id: 'a-1', parent: 'qwen' }, model), 'ok'],
    ['of another model', 200, serving({ id: 'llama' }), 'missing'],
    ['of another context', 200, serving({ ...model, max_model_len: 4096 }), 'missing'],
    ['that is none', 200, '<html>It works!</html>', 'missing'],
  ])('%s is asked without a change', async (_what, status, page, found) => {
    const calls: string[] = [];
    const server = createServer(({ method, url }, response) => {
      calls.push(`${method} ${url}`);
      if (url === '/health') response.end();
      else response.writeHead(status).end(page);
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    try {
      const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
      const items = modelChecks(campaign(vllm(url, { model: 'qwen' })));
      expect(await foundBy(items, { only: 'policy server' })).toEqual([`${found} policy server`]);
      expect(calls).toEqual(['GET /health', 'GET /v1/models']);
    } finally {
      server.close();
    }
  });

  test('that does not answer', async () => {
    const unused = vllm('http://127.0.0.1:2');
    expect(await foundBy(modelChecks(campaign(unused)), { only: 'policy server' })).toEqual(['missing policy server']);
  });
});

describe('language models', () => {
  let server: Awaited<ReturnType<typeof startChatServer>>;
  beforeEach(async () => (server = await startChatServer(streamed('OK'))));
  afterEach(() => server.close());
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
    tasks: { wanted: { test: 30 }, taken: { test: 30 } },
    detectable: { tasks: 30, difference: expect.any(Number) as number },
  });
  expect(found['purposes']).toContainEqual(expect.objectContaining({ purpose: 'base_rollouts' }));
});
