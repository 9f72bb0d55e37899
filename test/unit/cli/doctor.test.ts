/** What is missing is named with the way to get it. */
import { execFileSync } from 'node:child_process';
import { chmodSync, cpSync, mkdirSync, mkdtempSync, readFileSync, truncateSync, writeFileSync } from 'node:fs';
import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { type CheckItem, runChecks, warningsOf } from '../../../src/checks/check';
import { campaignFileSchema } from '../../../src/cli/campaign-schema';
import { languageModelChecks } from '../../../src/cli/checks/endpoints';
import {
  buildCheck,
  gpuCheck,
  homeCheck,
  memoryCheck,
  nodeCheck,
  pythonChecks,
  storeCheck,
  metricsChecks,
  toolsFound,
} from '../../../src/cli/checks/machine';
import { modelChecks, serverTrials, shownChecks } from '../../../src/cli/checks/model';
import { bridgeChecks, targetChecks } from '../../../src/cli/checks/target';
import { doctorLines, requireAll } from '../../../src/cli/doctor';
import { freePort } from '../../../src/cli/ports';
import { homeAt, pythonPath } from '../../../src/cli/project';
import type { Campaign } from '../../../src/domain/campaign';
import type { EnvironmentDescription } from '../../../src/domain/environment';
import { defineKind } from '../../../src/domain/kinds';
import type { Stage } from '../../../src/domain/work';
import { registry } from '../../../src/registry';
import { startChatServer } from '../../support/chat-server';
import { refuse, startDialectServer } from '../../support/dialect-server';
import { answered, streamed } from '../../support/model-endpoint';

// Some of them start the trainer's Python several times, and torch in it: seconds each, and more on busy cores.
jest.setTimeout(180_000);

const temporary = () => mkdtempSync(join(tmpdir(), 'doctor-'));
const home = homeAt(temporary());
const campaign = (over: object = {}, model = temporary()): Campaign =>
  campaignFileSchema(registry).parse({
    name: 'x',
    target: { kind: 'builtin', name: 'shop' },
    baseModel: { path: model },
    ...over,
  });
const vllm = (url: string, more: object = {}) => ({ policyServer: { kind: 'vllm', url, ...more } });
/** The check of each name. */
const look = async (items: CheckItem[], until?: Stage) =>
  Object.fromEntries((await runChecks(items, { until })).map(({ name, ...check }) => [name, check]));
const lookAt = (over: object = {}, until?: Stage) =>
  look(targetChecks({ campaign: campaign(over), home, until }), until);

/** An executable that prints a text. */
function programThatSays(text: string): string {
  const file = join(temporary(), 'program');
  writeFileSync(file, `#!/bin/sh\necho '${text}'\n`);
  chmodSync(file, 0o755);
  return file;
}

test('a store in a bucket is tried, and where it fails nobody asks what needs it', async () => {
  const items = () => [storeCheck(home), ...targetChecks({ campaign: campaign(), home })];
  try {
    for (const [url, detail] of [
      ['s3:/wrong', /^CAMPAIGN_STORE: s3:\/wrong is no address of a bucket; write s3:\/\/BUCKET\/PREFIX$/],
      [
        's3://bucket/x',
        /^writing s3:\/\/bucket\/x\/probe\/.*ECONNREFUSED 127.0.0.1:9; see to the bucket, AWS_ENDPOINT/,
      ],
    ] as const) {
      process.env['AWS_ENDPOINT_URL_S3'] = 'http://127.0.0.1:9';
      Object.assign(process.env, { CAMPAIGN_STORE: url, AWS_ACCESS_KEY_ID: 'x', AWS_SECRET_ACCESS_KEY: 'x' });
      const { store, ...others } = await look(items());
      expect(store).toEqual({ ok: false, detail: expect.stringMatching(detail) });
      expect(others['target environment']).toBeUndefined();
    }
  } finally {
    for (const name of ['CAMPAIGN_STORE', 'AWS_ENDPOINT_URL_S3', 'AWS_ACCESS_KEY_ID', 'AWS_SECRET_ACCESS_KEY'])
      delete process.env[name];
  }
  const { store, 'target environment': target } = await look(items());
  expect([store, target?.ok]).toEqual([undefined, true]);
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

  test('throws on what says nothing of a lack', async () => {
    await expect(runChecks([item('a', gone)], { isLack: () => false })).rejects.toThrow('gone');
  });
});

test.each<[string, string, RegExp, RegExp]>([
  ['is missing', '/no/python', /^there is no \/no\/python$/, /make install/],
  [
    'is too old',
    programThatSays('{"python": [3, 9, 1], "packages": {}}'),
    /is version 3\.9\.1$/,
    /^run `make install`, which finds or fetches Python 3\.11 or newer$/,
  ],
  ['does not run', programThatSays('not JSON'), /does not run/, /make install/],
])('Python that %s', async (_what, python, detail, fix) => {
  const [check, ...others] = await runChecks(pythonChecks(python));
  expect(check).toMatchObject({ ok: false, detail: expect.stringMatching(detail), fix: expect.stringMatching(fix) });
  expect(others).toEqual([]);
});

test('Python that lacks packages or has others', async () => {
  const packages = '{"python": [3, 11, 1], "packages": {"torch": "2.13.0+cpu", "trl": "0.1"}}';
  const { Python, 'Python packages': check } = await look(pythonChecks(programThatSays(packages)));
  expect([Python?.ok, check?.ok]).toEqual([true, false]);
  expect(check?.detail).toMatch(/trl is 0\.1, not 1\.16\.0/);
  expect(check?.detail).toContain('peft is missing');
  expect(check?.detail).not.toContain('torch');
});

describe('a base model', () => {
  const base = resolve('models/base');
  const at = (path: string, modules?: string[], python = pythonPath()) =>
    look(modelChecks(campaign(modules && { training: { lora: { targetModules: modules } } }, path), python));

  const make = 'make one with `make base-model` or `make real-model`, or correct baseModel.path in the campaign file';
  const hub =
    'if Qwen/Qwen2.5 is its name on the Hugging Face hub, download it with `.venv/bin/hf download Qwen/Qwen2.5 --local-dir models/Qwen2.5` and name that folder in baseModel.path';
  const whole = ['config.json', 'model.safetensors', 'tokenizer.json'];
  test.each<[path: string, files: string[] | undefined, lacks: string | undefined, fix: string | undefined]>([
    ['no/such/model', undefined, 'there is no folder PATH', make],
    // A name on the Hugging Face hub; a folder of models is none.
    ['Qwen/Qwen2.5', undefined, 'there is no folder PATH', hub],
    ['models/Qwen2.5', undefined, 'there is no folder PATH', make],
    ['model', ['config.json'], 'PATH lacks weights (*.safetensors), a tokenizer', make],
    ['model', whole, undefined, undefined],
  ])('at %s with files %j', async (path, files, lacks, fix) => {
    const folder = join(temporary(), path);
    if (files) mkdirSync(folder, { recursive: true });
    for (const file of files ?? []) writeFileSync(join(folder, file), '');
    const { 'base model': check } = await at(folder);
    if (lacks === undefined) expect(check).toEqual({ ok: true, detail: folder });
    else expect(check).toEqual({ ok: false, detail: lacks.replace('PATH', folder), fix });
  });

  test('a LoRA trains modules that the base has', async () => {
    expect((await at(base, ['q_proj', 'conv.in_proj']))['LoRA modules']?.ok).toBe(true);
    expect((await at(base, ['q_proj', 'gate_proj', 'conv']))['LoRA modules']).toEqual({
      ok: false,
      detail: `training.lora.targetModules: ${base} has no module gate_proj, conv that a LoRA can train`,
      fix: 'name modules of this base: in_proj, k_proj, out_proj, q_proj, v_proj, w1, w2, w3',
    });
  });

  test('of a mixture of experts the checkpoint has a gate_proj for each expert, and the model none', async () => {
    const model = temporary();
    const make =
      'import sys; from trainer.tests.conftest import save_tiny_model as save; save(sys.argv[1], kind="moe")';
    execFileSync(pythonPath(), ['-c', make, model]);
    expect(readFileSync(join(model, 'model.safetensors')).includes('experts.0.gate_proj.weight')).toBe(true);
    expect((await at(model))['LoRA modules']).toMatchObject({
      ok: false,
      detail: expect.stringMatching(/has no module gate_proj, up_proj, down_proj that/),
      fix: 'name modules of this base: experts, k_proj, o_proj, q_proj, v_proj',
    });
    const attention = campaign().training.lora.targetModules.slice(0, 4);
    expect((await at(model, attention))['LoRA modules']?.ok).toBe(true);

    const home = temporary();
    const experts = (over: object, dropout = 0) => {
      const training = { lora: { targetModules: ['q_proj', 'experts'], dropout } };
      return look(modelChecks(campaign({ training, ...over }, model), pythonPath(), home));
    };
    const vllm = { policyServer: { kind: 'vllm', url: 'http://127.0.0.1:8000' } };
    expect((await experts({}))['LoRA modules']).toEqual({
      ok: false,
      detail: 'the embedded policy server runs experts without adapters',
      fix: 'name q_proj, k_proj, v_proj, o_proj alone (preset attention-only), or serve it with vLLM',
    });
    expect((await experts(vllm, 0.1))['LoRA modules']).toMatchObject({ ok: false, fix: 'set it to 0' });
    expect((await experts(vllm))['LoRA modules']).toEqual({
      ok: true,
      detail:
        'q_proj, experts; vLLM needs --enable-mixed-moe-lora-format, and --max-lora-rank of 16 for each capability in a sum',
    });
  });

  test('whose weights were not downloaded, or not to their end', async () => {
    const model = temporary();
    cpSync(base, model, { recursive: true });
    const weights = join(model, 'model.safetensors');
    const detail = async () => (await at(model))['LoRA modules']?.detail;
    truncateSync(weights, 1000);
    expect(await detail()).toMatch(new RegExp(`^trainer check-model: ${weights} is not whole: .*; download it anew$`));
    writeFileSync(weights, 'version https://git-lfs.github.com/spec/v1\noid sha256:1\nsize 4\n');
    expect(await detail()).toContain(
      `${weights} is a git-lfs pointer and not the file itself; run \`git lfs pull\` in ${model}`,
    );
  });

  test('its chat template shows the target’s tools', async () => {
    const model = temporary();
    const tool = { name: 'find', description: '', parameters: { type: 'object' as const } };
    const template = async (tools: object[], over: object = {}) => {
      const describe = async () => ({ tools }) as EnvironmentDescription;
      return (await look(shownChecks({ campaign: campaign(over, model), describe })))['chat template'];
    };
    const file = join(model, 'chat_template.jinja');
    expect(await template([tool])).toBeUndefined();
    writeFileSync(join(model, 'config.json'), '{}');
    expect(await template([])).toMatchObject({ ok: false, detail: `${model} has none` });
    writeFileSync(join(model, 'tokenizer_config.json'), '{"chat_template": "{{ messages }} {{ tools }}"}');
    expect(await template([tool])).toMatchObject({ ok: true, detail: 'shows tools' });
    writeFileSync(file, '{{ messages[0].content }} my tools_of_trade');
    expect(await template([])).toMatchObject({ ok: true });
    expect(await template([tool])).toMatchObject({
      ok: false,
      detail: `that of ${model} does not show tools, and the target has 1: no rollout could call one`,
      fix: expect.stringContaining(`let ${file} show them`),
    });
    expect(await template([tool], vllm('http://127.0.0.1:2'))).toBeUndefined();
  });

  describe('its tokenizer', () => {
    const tokenizer = async (model: string, target: object = { kind: 'builtin', name: 'shop' }) =>
      (await look(targetChecks({ campaign: campaign({ target }, model), home, asksTokenizer: true })))[
        'base tokenizer'
      ];
    const program = (file: string) => ({ kind: 'process', command: [process.execPath, resolve('test/support', file)] });

    test('knows the target that its base was made for', async () => {
      expect(await tokenizer(base)).toEqual({
        ok: true,
        detail: expect.stringMatching(/^0% of the target's text \(0 of \d+ tokens\) is unknown/),
      });
    });

    test('does not know plain English, of which the written policy is enough where the user has no model here', async () => {
      expect(await tokenizer(base, program('library.mjs'))).toEqual({
        ok: false,
        detail: expect.stringMatching(/^\d\d% of the target's text .* most often .*"book"/),
        fix: "take a base whose vocabulary has the target's words (baseModel.path), or run with --force",
      });
      expect((await tokenizer(base, program('two-party.mjs')))?.detail).toContain('(2 of 2 tokens)');
    });

    test('that is missing or broken, and a target that is not there', async () => {
      const model = temporary();
      expect(await tokenizer(model)).toMatchObject({ ok: true, detail: expect.stringContaining('no tokenizer.json') });
      writeFileSync(join(model, 'tokenizer.json'), '{');
      expect(await tokenizer(model)).toMatchObject({
        ok: false,
        detail: expect.stringMatching(/check-tokens: .*tokenizer\.json/),
      });
      expect(await tokenizer(model, { kind: 'process', command: ['/no/target'] })).toBeUndefined();
    });
  });
});

describe('the target and the parts that work on it', () => {
  const noEnvironments = { kind: 'process', command: [process.execPath, resolve('test/support/two-party.mjs')] };

  test('describe themselves', async () => {
    expect(await lookAt()).toEqual({
      'target environment': {
        ok: true,
        detail: expect.stringMatching(/^shop 1: reference actions, \d+ rules, output schemas of 2 of 7 tools$/),
      },
      analyst: { ok: true, detail: 'rules' },
      synthesizer: { ok: true, detail: 'generators' },
    });
  });

  test.each<[object, RegExp]>([
    [{ evaluation: { skip: 100_000 } }, /^evaluation\.skip is 100000, but the target has \d+ test tasks; lower it to/],
    [
      { arms: [{ kind: 'grpo_target' }], training: { groupsPerStep: 10_000 } },
      /^training\.groupsPerStep is 10000, but the target has \d+ train tasks/,
    ],
  ])('fewer tasks than %j asks for', async (over, detail) => {
    expect((await lookAt(over))['target environment']).toMatchObject({
      ok: false,
      detail: expect.stringMatching(detail),
    });
  });

  test('a target that its analyst can not work on is a lack, one that no environment can be synthesized for is none', async () => {
    const items = targetChecks({ campaign: campaign({ target: noEnvironments, arms: [] }), home });
    const { analyst, synthesizer, ...others } = await look(items);
    expect(others['target environment']).toMatchObject({
      ok: true,
      detail: 'phone 1: no reference actions, no rules, output schemas of 0 of 1 tools',
    });
    expect(analyst).toEqual({
      ok: false,
      detail: expect.stringMatching(/analyst: \{kind: llm, .* or \{kind: given, capabilities: FILE\}/),
      fix: 'change the field analyst of the campaign file',
    });
    expect(synthesizer).toMatchObject({
      ok: true,
      warning: true,
      detail: expect.stringMatching(
        /^capabilities will end not_synthesized and get no adapter; generators: .*give one an outputSchema/,
      ),
    });
    expect(warningsOf(await runChecks(items))).toEqual([`synthesizer: ${synthesizer?.detail}`]);
  });

  test('parts that can not be opened; what works on the rollouts is no lack of a run that stops after these', async () => {
    const given = {
      analyst: { kind: 'given', capabilities: '/no/file.json' },
      synthesizer: { kind: 'given', modules: '/no/modules' },
      arms: [{ kind: 'gepa' }],
    };
    const checks = await lookAt(given, 'selection');
    expect(checks['analyst']).toEqual({
      ok: false,
      detail: expect.stringContaining('/no/file.json'),
      fix: 'correct the field analyst of the campaign file',
    });
    expect(checks['synthesizer']?.detail).toMatch(/^synthesizer\.modules: \/no\/modules cannot be read/);
    expect(checks['arm gepa']).toMatchObject({ ok: false, detail: expect.stringContaining('reflection is missing') });
    const untilRollouts = await runChecks(targetChecks({ campaign: campaign(given), home }), { until: 'rollouts' });
    expect(untilRollouts.every(({ ok }) => ok)).toBe(true);
    expect(warningsOf(untilRollouts).map((text) => text.split(': ').slice(0, 2))).toEqual([
      ['analyst', 'needed after the rollouts'],
      ['synthesizer', 'needed after the rollouts'],
      ['arm gepa', 'needed after the rollouts'],
    ]);
  });

  test('kinds of somebody else are asked like the project’s own', async () => {
    const analyst = defineKind({
      kind: 'mine',
      version: '1',
      options: {},
      open: (_, identity) => ({
        identity,
        selects: 'outright' as const,
        unsuited: ({ name }: { name: string }) => `${name} is not for me`,
        discover: async () => ({ candidates: [], faults: [] }),
        label: async () => Promise.reject(new Error('not asked')),
      }),
    });
    const kinds = { ...registry, analysts: [analyst] };
    const items = targetChecks({ campaign: { ...campaign(), analyst: { kind: 'mine' } }, home, registry: kinds });
    expect((await look(items))['analyst']).toMatchObject({ ok: false, detail: 'shop is not for me' });
  });

  test('a target has as long to answer as the campaign gives it', async () => {
    const command = ['/bin/sh', '-c', `sleep 2; exec ${process.execPath} test/support/two-party.mjs`];
    const check = async (silenceSeconds: number) =>
      (await lookAt({ target: { kind: 'process', command, silenceSeconds }, arms: [] }))['target environment'];
    expect(await check(1)).toMatchObject({
      ok: false,
      detail: expect.stringMatching(/has not answered describe for 1 s and was killed; .* set silenceSeconds higher/),
    });
    expect(await check(30)).toMatchObject({ ok: true });
  });

  test('a target command that dies', async () => {
    const command = [process.execPath, '-e', "console.error('no database'); process.exit(7)"];
    const { analyst, synthesizer, ...others } = await lookAt({ target: { kind: 'process', command } });
    expect(others['target environment']).toEqual({
      ok: false,
      detail: expect.stringMatching(/does not describe itself: .*(exit code 7|no database)/),
      fix: expect.stringContaining('campaign env check --'),
    });
    expect([analyst?.detail, synthesizer?.detail]).toEqual([
      'rules, not held against the target',
      'generators, not held against the target',
    ]);
  });

  const root = temporary();
  const tau2 = (checkout: string) => campaign({ target: { kind: 'tau2', domains: ['mock'], checkout } });
  test('a benchmark’s bridge is installed, and its folder is a checkout', async () => {
    const checks = () => runChecks(bridgeChecks(tau2(join(root, 'checkout')), { root }));
    expect(await checks()).toMatchObject([
      { name: 'bridge', ok: false, detail: '.venv-bridges is not installed', fix: 'run `make bridges`' },
      { ok: false, fix: 'name a checkout in target.checkout' },
    ]);
    for (const folder of ['.venv-bridges', 'checkout/src/tau2']) mkdirSync(join(root, folder), { recursive: true });
    writeFileSync(join(root, '.venv-bridges/.installed'), '');
    expect((await checks()).map(({ ok }) => ok)).toEqual([true, true]);
    expect((await runChecks(bridgeChecks(tau2(root), { root })))[1]?.detail).toBe(`${root} holds no src/tau2`);
    expect(await runChecks(bridgeChecks(campaign(), { root }))).toEqual([]);
  });
});

describe('a vLLM server', () => {
  const model = { id: 'qwen', max_model_len: 32_768 };
  /** What the check says of one that answers so, and what it was asked. */
  async function serving(o: { models?: object[]; status?: number; page?: string }) {
    const seen: IncomingMessage[] = [];
    const server = createServer((request, response) => {
      seen.push(request);
      if (request.url === '/health') return void response.end();
      response.writeHead(o.status ?? 200).end(o.page ?? JSON.stringify({ data: o.models ?? [model] }));
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    try {
      const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
      const checks = await look(modelChecks(campaign(vllm(url, { model: 'qwen' }))));
      return { check: checks['policy server']!, calls: seen.map(({ method, url }) => `${method} ${url}`) };
    } finally {
      server.close();
    }
  }

  test('is tried with adapters of the campaign’s rank and with their sum', async () => {
    const server = await startDialectServer();
    const asked = campaign(vllm(server.url), resolve('models/base'));
    asked.training.lora.targetModules = ['q_proj'];
    const check = async (most: number) => {
      server.load = ({ lora_name: name, lora_path: path }, response) => {
        const { r } = JSON.parse(readFileSync(join(String(path), 'adapter_config.json'), 'utf8')) as { r: number };
        const message = `Call to add_lora method failed: LoRA rank ${r} is greater than max_lora_rank ${most}.`;
        if (r > most) return refuse(500, { message })({}, response);
        server.adapters.set(String(name), String(path));
        response.end('ok');
      };
      return (await look(serverTrials(asked, home)))['adapters'];
    };
    try {
      server.root = '/models/mine';
      expect(await check(64)).toEqual({ ok: true, detail: 'of rank 16, and sums of 4 of them, are taken' });
      expect([...server.adapters.keys()]).toEqual([]);
      const tooHigh = (rank: number) => expect.stringMatching(new RegExp(`--max-lora-rank ${rank}$`)) as string;
      expect(await check(32)).toEqual({ ok: true, warning: true, detail: tooHigh(64) });
      expect(await check(8)).toEqual({ ok: false, detail: tooHigh(16) });
    } finally {
      await server.close();
    }
  }, 240_000);

  test('that has all that is needed is asked without a change', async () => {
    const { check, calls } = await serving({ models: [{ id: 'a-1', parent: 'qwen' }, model] });
    expect(check.ok).toBe(true);
    expect(calls).toEqual(['GET /health', 'GET /v1/models']);
  });

  test.each<[string, Parameters<typeof serving>[0], RegExp]>([
    ['of another model', { models: [{ id: 'llama' }] }, /serves llama, not qwen; .*policyServer\.model/],
    [
      'with another context',
      { models: [{ id: 'qwen', max_model_len: 4096 }] },
      /context is 4096 tokens, not 32768; start it with --max-model-len 32768/,
    ],
    [
      'that wants a key',
      { status: 401, page: '{"error": "Unauthorized"}' },
      /\/v1\/models answers 401 .*; set POLICY_SERVER_API_KEY to its key$/,
    ],
    [
      'that is none',
      { page: '<html><body>It works!</body></html>' },
      /no policy server answers there: \/v1\/models says <html><body>It works!.*; name the address of vLLM itself/,
    ],
    ['that is elsewhere', { status: 404, page: 'Not Found' }, /\/v1\/models says 404 Not Found; name the address/],
  ])('%s', async (_what, answers, text) => {
    const { ok, detail, fix } = (await serving(answers)).check;
    expect(ok).toBe(false);
    expect([detail, ...(fix ? [fix] : [])].join('; ')).toMatch(text);
  });

  test('that does not answer', async () => {
    const url = `http://127.0.0.1:${await freePort()}`;
    expect((await look(modelChecks(campaign(vllm(url)))))['policy server']).toEqual({
      ok: false,
      detail: expect.stringContaining(`${url}: `),
      fix: 'start it, or correct policyServer.url in the campaign file',
    });
  });
});

describe('language models', () => {
  let server: Awaited<ReturnType<typeof startChatServer>>;
  beforeEach(async () => (server = await startChatServer(streamed('OK'))));
  afterEach(() => server.close());
  const model = (more: object = {}) => ({ kind: 'llm', url: server.url, model: 'm', ...more });
  const ask = (over: object, asks = true) => look(languageModelChecks(campaign(over), { asks }));

  test('each is asked once, as a campaign will', async () => {
    expect(await ask({ analyst: model({ temperature: 0.5 }), synthesizer: model({ model: 'n' }) })).toEqual({
      'language model of the analyst': { ok: true, detail: `m at ${server.url} answers` },
      'language model of the synthesizer': { ok: true, detail: `n at ${server.url} answers` },
    });
    expect(server.requests.map(({ body }) => [body['model'], body['temperature'], body['stream']]).sort()).toEqual([
      ['m', 0.5, true],
      ['n', 1, true],
    ]);
    expect(await ask({})).toEqual({});
  });

  test('what is wrong names the field that mends it', async () => {
    const detail = async (over: object, asks?: boolean) =>
      Object.values(await ask(over, asks)).map((one) => one.detail);
    const keyless = { analyst: model({ apiKeyEnv: 'NOT_SET' }) };
    for (const asks of [true, false])
      expect(await detail(keyless, asks)).toEqual([expect.stringMatching(/^analyst\.apiKeyEnv is NOT_SET, and this/)]);
    expect(await detail({ analyst: model() }, false)).toEqual([]);
    expect(server.requests).toEqual([]);
    server.play = answered(404, '{"error":{"message":"no such model"}}');
    expect(await detail({ synthesizer: model() })).toEqual([expect.stringMatching(/correct synthesizer\.model or/)]);
    expect(await detail({ analyst: model(), budget: { dollars: 3 } })).toEqual([
      'budget.dollars is 3, and analyst.price is missing',
    ]);
  });

  test('a target that plays its user itself needs none; of a benchmark it is asked with its own key', async () => {
    const detail = async (...users: object[]) => {
      const models = users.map((more) => ['user', { url: server.url, model: 'm', ...more }]);
      const target = { kind: 'tau2', domains: ['mock'], ...Object.fromEntries(models) };
      return (await ask({ target }, false))['simulated user']?.detail;
    };
    expect(await ask({ target: { kind: 'process', command: ['x'] } }, false)).toEqual({});
    expect(await detail()).toBe('target.user is missing');
    expect(await detail({ apiKeyEnv: 'NOT_SET' })).toMatch(/apiKeyEnv is NOT_SET, and this variable is not set/);
    expect(await detail({ url: `http://127.0.0.1:${await freePort()}/v1` })).toContain('ECONNREFUSED');
    server.play = answered(401, '{"error":{"message":"no key"}}');
    expect(await detail({})).toContain('target.user.apiKeyEnv');
  });
});

const gpus = programThatSays('0, A100, 81920 MiB\n1, A100, 81920 MiB\n2, A100, 81920 MiB\n3, A100, 81920 MiB');
test.each<[slots: number, each: number, Parameters<typeof gpuCheck>[1], object | undefined]>([
  [2, 0, {}, undefined],
  [1, 4, { program: gpus, visible: '0,1,2,3' }, { ok: true }],
  [1, 2, { program: gpus, visible: '2,3' }, { ok: true, detail: expect.stringContaining('2 of 4') }],
  [
    2,
    2,
    { program: gpus, visible: '2,3' },
    {
      ok: false,
      detail: expect.stringMatching(/4 needed$/),
      fix: 'use a machine with 4 for the trainers, or lower workers.gpuSlots 2 x workers.gpusPerTrainer 2',
    },
  ],
  [1, 1, { program: '/none/nvidia-smi' }, { ok: false, detail: expect.stringContaining('nvidia-smi does not run') }],
])('GPUs are counted against the layout: %i slots of %i, %j', async (gpuSlots, gpusPerTrainer, machine, found) => {
  const item = gpuCheck(campaign({ workers: { gpuSlots, gpusPerTrainer } }), machine);
  expect(await runChecks([item])).toMatchObject(found ? [found] : []);
});

describe('the machine', () => {
  const folder = temporary();
  writeFileSync(join(folder, 'file'), '');
  const room = 1024 ** 3;

  test.each<[CheckItem, object]>([
    [nodeCheck('20.19.0'), { ok: true }],
    [nodeCheck('22.1.0'), { ok: true }],
    [nodeCheck('20.18.3'), { ok: false, fix: 'install Node 20.19 or newer' }],
    [memoryCheck(4 * room), { ok: false }],
    [memoryCheck(6 * room), { ok: true }],
    [buildCheck(folder), { ok: false, fix: 'run `make build`' }],
    [homeCheck(homeAt(join(folder, 'file/home'))), { ok: false }],
    [homeCheck(homeAt(join(folder, 'there/later'))), { ok: true }],
    [homeCheck(home, campaign(), () => 1.5 * room), { ok: false, fix: expect.stringMatching(/^free 2 GiB/) }],
    [
      homeCheck(home, campaign(vllm('http://gpu:8000')), () => 44 * room),
      { warning: true, detail: `${home.root}, 44.0 GiB free; a campaign of the paper's size takes 50 GiB` },
    ],
  ])('%# $name', async (item, found) => {
    expect(await runChecks([item])).toMatchObject([found]);
  });

  test('what is missing is one line, first in the error', async () => {
    const items = [nodeCheck('20.19.0'), { ...nodeCheck('18.1.0'), name: 'node' }, buildCheck(temporary())];
    const checks = await runChecks(items);
    expect(() => requireAll(checks)).toThrow('node: version 18.1.0; install Node 20.19 or newer');
    expect(doctorLines(checks)).toEqual([
      'ok       Node   20.19.0',
      'missing  node   version 18.1.0; install Node 20.19 or newer',
      'missing  build  dist/workers/worker.js is missing; run `make build`',
    ]);
    expect(doctorLines(checks, 48).slice(1)).toEqual([
      'missing  node   version 18.1.0; install Node\n                20.19 or newer',
      'missing  build  dist/workers/worker.js is\n                missing; run `make build`',
    ]);
    expect(doctorLines(checks, 30)[1]).toBe('missing  node   version\n  18.1.0; install Node 20.19\n  or newer');
  });
});

describe('curves', () => {
  afterEach(() => {
    delete process.env['CAMPAIGN_METRICS_PYTHON'];
  });
  const check = async (python: string) => {
    process.env['CAMPAIGN_METRICS_PYTHON'] = python;
    const checks = await runChecks(metricsChecks(['trackio', 'wandb']));
    return { details: checks.map(({ detail }) => detail), found: toolsFound(['trackio', 'wandb'], checks) };
  };

  it('what can not be written is a warning that says how to get it, and the rest is written', async () => {
    const some = join(temporary(), 'python');
    const answer = JSON.stringify({ python: [3, 12, 0], packages: { trackio: '0.43.0', wandb: null } });
    writeFileSync(some, `#!/bin/sh\necho '${answer}'\n`, { mode: 0o755 });
    const { details, found } = await check(some);
    expect(details).toEqual([
      `trackio 0.43.0 (${some})`,
      `none are written: ${some} has no package wandb; run \`make metrics\`, or name a Python that has it in CAMPAIGN_METRICS_PYTHON`,
    ]);
    expect(found).toEqual(['trackio']);
    expect(await check('/nowhere/python')).toMatchObject({
      details: Array.from(
        { length: 2 },
        () => expect.stringContaining('there is no /nowhere/python; run `make metrics`') as string,
      ),
      found: [],
    });
  });
});
