/** What is missing is named with the way to get it. */
import { execFileSync } from 'node:child_process';
import { cpSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join, resolve } from 'node:path';
import { type CheckItem, runChecks, warningsOf } from '../../../src/checks/check';
import { campaignFileSchema } from '../../../src/cli/campaign-schema';
import { languageModelChecks } from '../../../src/cli/checks/endpoints';
import {
  buildCheck,
  gpuCheck,
  homeCheck,
  temporaryCheck,
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

/** What a doctor says, a line a check, with one space where columns begin. `only`: the check that is looked at. */
async function saidOf(items: CheckItem[], { until, only }: { until?: Stage; only?: string } = {}): Promise<string[]> {
  const checks = await runChecks(
    items.filter(({ name }) => name === (only ?? name)),
    { until },
  );
  return doctorLines(checks).map((line) => line.replaceAll(/ +/g, ' '));
}
type Line = string | RegExp;
const matching = (lines: Line[]) =>
  lines.map((line) => (typeof line === 'string' ? line : (expect.stringMatching(line) as string)));

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

test.each<[string | undefined, Line[]]>([
  ['s3:/wrong', ['missing store CAMPAIGN_STORE: s3:/wrong is no address of a bucket; write s3://BUCKET/PREFIX']],
  [
    's3://bucket/x',
    [/^missing store reading s3:\/\/bucket\/x\/id: .*ECONNREFUSED 127.0.0.1:9; see to the bucket, AWS_ENDPOINT/],
  ],
  [undefined, [/^ok target environment /]],
])('a store at %s is tried, and where it fails nobody asks the target', async (url, lines) => {
  const key = { AWS_ACCESS_KEY_ID: 'x', AWS_SECRET_ACCESS_KEY: 'x' };
  if (url) setEnv({ CAMPAIGN_STORE: url, AWS_ENDPOINT_URL_S3: 'http://127.0.0.1:9', ...key });
  const items = [storeCheck(home), ...targetChecks({ campaign: campaign(), home })].slice(0, 2);
  expect(await saidOf(items)).toEqual(matching(lines));
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

describe('the machine', () => {
  const room = 1024 ** 3;
  const file = join(folderOf({ file: '' }), 'file');
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

  test.each<[CheckItem | CheckItem[], ...Line[]]>([
    [nodeCheck('20.19.0'), 'ok Node 20.19.0'],
    [nodeCheck('22.1.0'), 'ok Node 22.1.0'],
    [nodeCheck('20.18.3'), 'missing Node version 20.18.3; install Node 20.19 or newer'],
    [memoryCheck(4 * room), /^missing memory 4\.0 GiB; use a machine with 6 GiB/],
    [memoryCheck(6 * room), 'ok memory 6.0 GiB'],
    [buildCheck(bare), /^missing build .*; run `make build`$/],
    [homeCheck(homeAt(join(file, 'home'))), /^missing home folder .* is not a folder; choose a folder .* --home$/],
    [homeCheck(homeAt(join(bare, 'there/later'))), /^ok home folder .*there\/later, /],
    [homeCheck(home, campaign(), () => 1.5 * room), /^missing home folder .*; free 2 GiB/],
    [
      homeCheck(home, campaign(vllm('http://gpu:8000')), () => 44 * room),
      `warning home folder ${home.root}, 44.0 GiB free; a campaign of the paper's size takes 50 GiB`,
    ],
    [temporaryCheck(bare), `ok temporary files ${bare}`],
    [temporaryCheck(join(bare, 'none')), /^missing temporary files TMPDIR is .*none, .*; set TMPDIR to a folder/],
    [pythonChecks('/no/python'), /^missing Python there is no \/no\/python; run `make install`/],
    [
      pythonChecks(old),
      `missing Python ${old} is version 3.9.1; run \`make install\`, which finds or fetches Python 3.11 or newer`,
    ],
    [pythonChecks(programThatSays('not JSON')), /^missing Python .* does not run.*make install/],
    [
      pythonChecks(programThatSays(packages)),
      /^ok Python 3\.11\.1 /,
      /^missing Python packages (?!.*torch)(?=.*peft is missing).*trl is 0\.1, not 1\.16\.0/,
    ],
    [gpus(2, 0)],
    [gpus(1, 4, { program, visible: '0,1,2,3' }), /^ok GPUs 4 of 4/],
    [gpus(1, 2, { program, visible: '2,3' }), /^ok GPUs 2 of 4/],
    [
      gpus(2, 2, { program, visible: '2,3' }),
      /^missing GPUs .*4 needed; use a machine with 4 for the trainers, or lower workers\.gpuSlots 2 x workers\.gpusPerTrainer 2$/,
    ],
    [gpus(1, 1, { program: '/none/nvidia-smi' }), /^missing GPUs \/none\/nvidia-smi does not run/],
    // Of a benchmark's target.
    [
      bridge(bare, join(bare, 'checkout')),
      'missing bridge .venv-bridges is not installed; run `make bridges`',
      /^missing .* there is no folder .*; name a checkout in target\.checkout$/,
    ],
    [bridge(bridged, join(bridged, 'checkout')), 'ok bridge .venv-bridges', /^ok /],
    [bridge(bridged, bridged), /^ok /, new RegExp(`^missing .* ${bridged} holds no src/tau2; `)],
    [bridgeChecks(campaign())],
  ])('%#', async (items, ...lines) => {
    expect(await saidOf([items].flat())).toEqual(matching(lines));
  });

  test('what is missing is one line, first in the error', async () => {
    const items = [nodeCheck('20.19.0'), { ...nodeCheck('18.1.0'), name: 'node' }, buildCheck(newFolder())];
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

  test('curves that can not be written are a warning that says how to get them, and the rest is written', async () => {
    const python = programThatSays('{"python": [3, 12, 0], "packages": {"trackio": "0.43.0", "wandb": null}}');
    setEnv({ CAMPAIGN_METRICS_PYTHON: python });
    const tools = ['trackio', 'wandb'] as const;
    const checks = await runChecks(metricsChecks(tools));
    expect(checks.map(({ detail }) => detail)).toEqual([
      `trackio 0.43.0 (${python})`,
      `none are written: ${python} has no package wandb; run \`make metrics\`, or name a Python that has it in CAMPAIGN_METRICS_PYTHON`,
    ]);
    expect(toolsFound(tools, checks)).toEqual(['trackio']);
    const nowhere = /^warning curves for \w+ .* there is no \/nowhere\/python; run `make metrics`/;
    expect(await saidOf(metricsChecks(tools, '/nowhere/python'))).toEqual(matching([nowhere, nowhere]));
  });
});

describe('a base model', () => {
  const make = 'make one with `make base-model`, or correct baseModel.path in the campaign file';
  const hub =
    'if Qwen/Qwen2.5 is its name on the Hugging Face hub, download it with `.venv/bin/hf download Qwen/Qwen2.5 --local-dir models/Qwen2.5` and name that folder in baseModel.path';
  const whole = { 'config.json': '', 'model.safetensors': '', 'tokenizer.json': '' };
  test.each<[path: string, files: Record<string, string> | undefined, line: string]>([
    ['no/such/model', undefined, `missing base model there is no folder PATH; ${make}`],
    // A name on the Hugging Face hub; a folder of models is none.
    ['Qwen/Qwen2.5', undefined, `missing base model there is no folder PATH; ${hub}`],
    ['models/Qwen2.5', undefined, `missing base model there is no folder PATH; ${make}`],
    ['model', { 'config.json': '' }, `missing base model PATH lacks weights (*.safetensors), a tokenizer; ${make}`],
    ['model', whole, 'ok base model PATH'],
  ])('at %s with files %j', async (path, files, line) => {
    const folder = join(newFolder(), path);
    if (files) folderOf(files, folder);
    const said = await saidOf(modelChecks(campaign({}, folder)), { only: 'base model' });
    expect(said).toEqual([line.replace('PATH', folder)]);
  });

  describe('and the modules that a LoRA trains:', () => {
    const [moe, pointer] = [newFolder(), newFolder()];
    beforeAll(() => {
      const save = 'from trainer.tests.conftest import save_tiny_model as save; save(sys.argv[1], kind="moe")';
      execFileSync(pythonPath(), ['-c', `import sys; ${save}`, moe]);
      cpSync(base, pointer, { recursive: true });
      folderOf({ 'model.safetensors': 'version https://git-lfs.github.com/spec/v1\noid sha256:1\nsize 4\n' }, pointer);
    });
    const experts = ['q_proj', 'experts'];
    const served = vllm('http://127.0.0.1:8000');

    test.each<[model: string, modules: string[], over: { dropout?: number; policyServer?: object }, line: RegExp]>([
      [base, ['q_proj', 'conv.in_proj'], {}, /^ok LoRA modules q_proj, conv\.in_proj$/],
      [base, ['gate_proj', 'conv'], {}, /^missing .* no module gate_proj, conv .*; name modules .*: in_proj, .*, w3$/],
      [pointer, ['q_proj'], {}, /^missing .* is a git-lfs pointer .*; run `git lfs pull` in \S+, .* baseModel\.path/],
      [moe, ['q_proj', 'v_proj'], {}, /^ok LoRA modules q_proj, v_proj$/],
      [moe, experts, {}, /^missing .* runs experts without adapters; name q_proj, .* alone .*, or serve it with vLLM$/],
      [moe, experts, { ...served, dropout: 0.1 }, /^missing .*training\.lora\.dropout is 0\.1, .*; set it to 0$/],
      [moe, experts, served, /^ok .* --enable-mixed-moe-lora-format, and --max-lora-rank of 16 for each capability/],
    ])('%s, %j with %j', async (model, targetModules, { dropout = 0, ...over }, line) => {
      const asked = campaign({ training: { lora: { targetModules, dropout } }, ...over }, model);
      const said = await saidOf(modelChecks(asked, pythonPath(), home.root), { only: 'LoRA modules' });
      expect(said).toEqual(matching([line]));
    });
  });

  describe('its chat template shows the target’s tools', () => {
    const tool = { name: 'find', description: '', parameters: { type: 'object' as const } };
    const config = { 'config.json': '{}' };
    const configured = { ...config, 'tokenizer_config.json': '{"chat_template": "{{ messages }} {{ tools }}"}' };
    const silent = { ...configured, 'chat_template.jinja': '{{ messages[0].content }} my tools_of_trade' };
    test.each<[files: Record<string, string>, tools: object[], over: object, lines: Line[]]>([
      [{}, [tool], {}, []],
      [config, [], {}, [/^missing chat template \S+ has none; write \S+\/chat_template\.jinja/]],
      [configured, [tool], {}, ['ok chat template shows tools']],
      [silent, [], {}, [/^ok /]],
      [silent, [tool], {}, [/ does not show tools, and the target has 1: .*; let \S+\/chat_template\.jinja show them/]],
      [silent, [tool], vllm('http://127.0.0.1:2'), []],
    ])('%j with tools %j, %j', async (files, tools, over, lines) => {
      const describe = async () => ({ tools }) as EnvironmentDescription;
      const asked = campaign(over, folderOf(files));
      expect(await saidOf(shownChecks({ campaign: asked, describe }))).toEqual(matching(lines));
    });
  });

  const shop = { kind: 'shop' };
  test.each<[string, model: string, target: object, lines: Line[]]>([
    ['it was made for', base, shop, [/^ok base tokenizer 0% of the target's text \(0 of \d+ tokens\) is unknown/]],
    ['in English', base, supported('library.mjs'), [/^missing .* \d\d% of .*"book".*baseModel\.path.* --force$/]],
    // The written policy is enough where the user has no model here.
    ['with a user', base, supported('two-party.mjs'), [/^missing .*\(2 of 2 tokens\)/]],
    ['and it is missing', newFolder(), shop, [/^ok base tokenizer .*no tokenizer\.json/]],
    ['and it is broken', folderOf({ 'tokenizer.json': '{' }), shop, [/^missing .*check-tokens: .*tokenizer\.json/]],
    ['that is not there', base, program('/no/target'), []],
  ])('its tokenizer is asked about the words of a target %s', async (_what, model, target, lines) => {
    const items = targetChecks({ campaign: campaign({ target }, model), home, asksTokenizer: true });
    expect(await saidOf(items, { only: 'base tokenizer' })).toEqual(matching(lines));
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

  test('describe themselves; what can not be asked is not held against it', async () => {
    expect(await saidOf(targetChecks({ campaign: campaign(), home }))).toEqual(
      matching([
        /^ok target environment shop 1: reference actions, \d+ rules, output schemas of 2 of 7 tools$/,
        'ok analyst rules',
        'ok synthesizer generators',
      ]),
    );
    expect(await saidOf(targetChecks({ campaign: campaign({ target: dies }), home }))).toEqual(
      matching([
        /^missing target environment .*does not describe itself: .*(exit code 7|no database).*campaign env check --/,
        'ok analyst rules, not held against the target',
        'ok synthesizer generators, not held against the target',
      ]),
    );
  });

  test.each<[over: object, until: Stage | undefined, ...Line[]]>([
    [
      { arms: [{ kind: 'grpo_target' }], training: { groupsPerStep: 10_000 } },
      undefined,
      /^missing target environment training\.groupsPerStep is 10000, but the target has \d+ train tasks/,
    ],
    [{ target: slow }, undefined, /^missing .* has not answered describe for 1 s .*; .* set silenceSeconds higher/],
    [
      { target: supported('two-party.mjs'), arms: [] },
      undefined,
      /^missing analyst .*\{kind: llm, .* or \{kind: given, capabilities: FILE\}.*; change the field analyst of/,
      /^warning synthesizer capabilities will end not_synthesized .*; generators: .*give one an outputSchema/,
    ],
    [
      given,
      'selection',
      /^missing analyst .*\/no\/file\.json.*; correct the field analyst of the campaign file$/,
      /^missing synthesizer synthesizer\.modules: \/no\/modules cannot be read/,
      /^missing arm gepa .*reflection is missing/,
    ],
    [
      given,
      'rollouts',
      /^warning analyst needed after the rollouts: .*; correct/,
      /^warning synthesizer needed after the rollouts: .*; correct/,
      /^warning arm gepa needed after the rollouts: .*; correct/,
    ],
  ])('of %j lack until %s', async (over, until, ...lines) => {
    const said = await saidOf(targetChecks({ campaign: campaign(over), home }), until && { until });
    expect(said.filter((line) => !line.startsWith('ok'))).toEqual(matching(lines));
  });

  test('kinds of somebody else are asked like the project’s own; a warning is none of the lacks', async () => {
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
    const asked = { ...campaign({ target: supported('two-party.mjs'), arms: [] }), analyst: { kind: 'mine' } };
    const checks = await runChecks(targetChecks({ campaign: asked, home, registry: kinds }));
    expect(checks.filter(({ ok }) => !ok)).toMatchObject([{ name: 'analyst', detail: 'phone is not for me' }]);
    expect(warningsOf(checks)).toEqual([expect.stringMatching(/^synthesizer: capabilities will end not_synthesized/)]);
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
      return saidOf(serverTrials(asked, home), { only: 'adapters' });
    };
    try {
      server.root = '/models/mine';
      expect(await check(64)).toEqual(['ok adapters of rank 16, and sums of 4 of them, are taken']);
      expect([...server.adapters.keys()]).toEqual([]);
      expect(await check(32)).toEqual(matching([/^warning .*--max-lora-rank 64$/]));
      expect(await check(8)).toEqual(matching([/^missing .*--max-lora-rank 16$/]));
    } finally {
      await server.close();
    }
  }, 240_000);

  test.each<[string, status: number, page: string, RegExp]>([
    ['that has all that is needed', 200, serving({ id: 'a-1', parent: 'qwen' }, model), /^ok /],
    ['of another model', 200, serving({ id: 'llama' }), /^missing .*serves llama, not qwen; .*policyServer\.model/],
    ['of another context', 200, serving({ ...model, max_model_len: 4096 }), /^missing .* 4096 .*max-model-len 32768/],
    ['that wants a key', 401, '{"error": "Unauthorized"}', /^missing .* answers 401 .*; set POLICY_SERVER_API_KEY/],
    ['that is none', 200, '<html>It works!</html>', /^missing .* says <html>It works!.*; name the address of vLLM/],
    ['that is elsewhere', 404, 'Not Found', /^missing .*\/v1\/models says 404 Not Found; name the address/],
  ])('%s is asked without a change', async (_what, status, page, line) => {
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
      expect(await saidOf(items, { only: 'policy server' })).toEqual(matching([line]));
      expect(calls).toEqual(['GET /health', 'GET /v1/models']);
    } finally {
      server.close();
    }
  });

  test('that does not answer', async () => {
    const url = `http://127.0.0.1:${await freePort()}`;
    expect(await saidOf(modelChecks(campaign(vllm(url))), { only: 'policy server' })).toEqual([
      expect.stringMatching(
        `^missing policy server .*${url}: .*; start it, or correct policyServer.url in the campaign file$`,
      ),
    ]);
  });
});

describe('language models', () => {
  let server: Awaited<ReturnType<typeof startChatServer>>;
  beforeEach(async () => (server = await startChatServer(streamed('OK'))));
  afterEach(() => server.close());
  const model = (more: object = {}) => ({ kind: 'llm', url: server.url, model: 'm', ...more });
  const said = (over: object, asks = true) => saidOf(languageModelChecks(campaign(over), { asks }));

  test('each is asked once, as a campaign will', async () => {
    expect(await said({ analyst: model({ temperature: 0.5 }), synthesizer: model({ model: 'n' }) })).toEqual([
      `ok language model of the analyst m at ${server.url} answers`,
      `ok language model of the synthesizer n at ${server.url} answers`,
    ]);
    expect(server.requests.map(({ body }) => [body['model'], body['temperature'], body['stream']]).sort()).toEqual([
      ['m', 0.5, true],
      ['n', 1, true],
    ]);
    expect(await said({})).toEqual([]);
  });

  test('what is wrong names the field that mends it', async () => {
    const keyless = { analyst: model({ apiKeyEnv: 'NOT_SET' }) };
    for (const asks of [true, false])
      expect(await said(keyless, asks)).toEqual(
        matching([/^missing language model of the analyst analyst\.apiKeyEnv is NOT_SET, and this/]),
      );
    expect(await said({ analyst: model() }, false)).toEqual([]);
    expect(server.requests).toEqual([]);
    server.play = answered(404, '{"error":{"message":"no such model"}}');
    expect(await said({ synthesizer: model() })).toEqual(matching([/^missing .*correct synthesizer\.model or/]));
    expect(await said({ analyst: model(), budget: { dollars: 3 } })).toEqual(
      matching([/ budget\.dollars is 3, and analyst\.price is missing; set it, or budget\.tokens instead$/]),
    );
  });

  test('a target that plays its user itself needs none; of a benchmark it is asked with its own key', async () => {
    const ofUser = async (...users: object[]) => {
      const models = users.map((more) => ['user', { url: server.url, model: 'm', ...more }]);
      return said({ target: { kind: 'tau2', domains: ['mock'], ...Object.fromEntries(models) } }, false);
    };
    expect(await said({ target: program('x') }, false)).toEqual([]);
    expect(await ofUser()).toEqual(
      matching([/^missing simulated user target\.user is missing; name its url and model there/]),
    );
    expect(await ofUser({ apiKeyEnv: 'NOT_SET' })).toEqual(
      matching([/apiKeyEnv is NOT_SET, and this variable is not set/]),
    );
    expect(await ofUser({ url: `http://127.0.0.1:${await freePort()}/v1` })).toEqual(matching([/ECONNREFUSED/]));
    server.play = answered(401, '{"error":{"message":"no key"}}');
    expect(await ofUser({})).toEqual(matching([/target\.user\.apiKeyEnv/]));
  });
});
