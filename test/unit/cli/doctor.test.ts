/** What is missing is named with the way to get it. */
import { execFileSync } from 'node:child_process';
import { chmodSync, cpSync, mkdirSync, mkdtempSync, readFileSync, truncateSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { campaignFileSchema } from '../../../src/cli/campaign-schema';
import { checkBridge, checkTarget } from '../../../src/cli/checks/target';
import {
  checkAdapters,
  checkModel,
  checkPolicyServer,
  checkTemplate,
  checkTokens,
} from '../../../src/cli/checks/base-model';
import { passed, warningsOf } from '../../../src/checks/check';
import { requireAll } from '../../../src/cli/errors';
import { checkBuild, checkGpus, checkHome, checkMemory, checkNode, checkPython } from '../../../src/cli/checks/machine';
import { doctorLines } from '../../../src/cli/doctor';
import { freePort } from '../../../src/cli/ports';
import { homeAt, pythonPath } from '../../../src/cli/project';
import type { Campaign, Stage } from '../../../src/domain/campaign';
import type { EnvironmentDescription } from '../../../src/domain/environment';
import { defineKind } from '../../../src/domain/kinds';
import { registry } from '../../../src/registry';
import { refuse, startDialectServer } from '../../support/dialect-server';

// Some of them start the trainer's Python several times, and torch in it: seconds each, and more on busy cores.
jest.setTimeout(180_000);

const temporary = () => mkdtempSync(join(tmpdir(), 'doctor-'));
const campaign = (over: Partial<Campaign> & { model?: string; url?: string } = {}) => {
  const { model = temporary(), url, ...fields } = over;
  return campaignFileSchema(registry).parse({
    name: 'x',
    target: { kind: 'builtin', name: 'shop' },
    baseModel: { path: model },
    ...(url && { policyServer: { kind: 'vllm', url } }),
    ...fields,
  });
};

/** An executable that stands for a Python and answers the probe as one would. */
function pythonThatSays(text: string): string {
  const file = join(temporary(), 'python');
  writeFileSync(file, `#!/bin/sh\necho '${text}'\n`);
  chmodSync(file, 0o755);
  return file;
}

describe('Python', () => {
  it('that is missing', async () => {
    const [check] = await checkPython('/no/python');
    expect(check).toMatchObject({ ok: false, detail: 'there is no /no/python' });
    expect(check?.fix).toContain('make install');
  });

  it('that is too old', async () => {
    const [check] = await checkPython(pythonThatSays('{"python": [3, 9, 1], "packages": {}}'));
    expect(check).toMatchObject({ ok: false, fix: 'run `make install`, which finds or fetches Python 3.11 or newer' });
    expect(check?.detail).toMatch(/is version 3\.9\.1$/);
  });

  it('that does not run', async () => {
    const [check] = await checkPython(pythonThatSays('not JSON'));
    expect(check).toMatchObject({ ok: false });
    expect(check?.detail).toContain('does not run');
  });

  it('that lacks packages or has others', async () => {
    const packages = '{"python": [3, 11, 1], "packages": {"torch": "2.13.0+cpu", "trl": "0.1"}}';
    const [interpreter, check] = await checkPython(pythonThatSays(packages));
    expect(interpreter?.ok).toBe(true);
    expect(check?.ok).toBe(false);
    expect(check?.detail).toContain('trl is 0.1, not 1.16.0');
    expect(check?.detail).toContain('peft is missing');
    expect(check?.detail).not.toContain('torch');
  });
});

describe('a campaign’s needs', () => {
  it('a model folder that is not there', async () => {
    expect(await checkModel(campaign({ model: '/no/such/model' }))).toMatchObject({
      ok: false,
      detail: 'there is no folder /no/such/model',
      fix: 'make one with `make base-model` or `make real-model`, or correct baseModel.path in the campaign file',
    });
  });

  it('a name on the Hugging Face hub in place of a folder', async () => {
    const model = join(temporary(), 'Qwen/Qwen2.5-0.5B-Instruct');
    expect(await checkModel(campaign({ model }))).toMatchObject({
      ok: false,
      detail: `there is no folder ${model}`,
      fix: 'if Qwen/Qwen2.5-0.5B-Instruct is its name on the Hugging Face hub, download it with `.venv/bin/hf download Qwen/Qwen2.5-0.5B-Instruct --local-dir models/Qwen2.5-0.5B-Instruct` and name that folder in baseModel.path',
    });
    const missing = join(temporary(), 'models/Qwen2.5-0.5B-Instruct');
    expect((await checkModel(campaign({ model: missing }))).fix).toMatch(/^make one with/);
  });

  it('a model folder that is not whole', async () => {
    const model = temporary();
    writeFileSync(join(model, 'config.json'), '{}');
    expect((await checkModel(campaign({ model }))).detail).toBe(`${model} lacks weights (*.safetensors), a tokenizer`);
    for (const file of ['model.safetensors', 'tokenizer.json']) writeFileSync(join(model, file), '');
    expect((await checkModel(campaign({ model }))).ok).toBe(true);
  });

  const lora = (targetModules: string[]) => ({ training: { lora: { targetModules } } }) as unknown as Partial<Campaign>;

  it('a LoRA on modules that the base has', async () => {
    const model = resolve('models/base');
    const check = (modules: string[]) => checkModel(campaign({ model, ...lora(modules) }), pythonPath());
    expect(await check(['q_proj', 'conv.in_proj'])).toEqual(passed('base model', model));
    expect(await check(['q_proj', 'gate_proj', 'conv'])).toEqual({
      name: 'base model',
      ok: false,
      detail: `training.lora.targetModules: ${model} has no module gate_proj, conv that a LoRA can train`,
      fix: 'name modules of this base: in_proj, k_proj, out_proj, q_proj, v_proj, w1, w2, w3',
    });
  });

  it('a mixture of experts, whose checkpoint has a gate_proj for each expert and whose model has none', async () => {
    const model = temporary();
    const make =
      'import sys, pathlib; from trainer.tests.conftest import save_tiny_moe; save_tiny_moe(pathlib.Path(sys.argv[1]))';
    execFileSync(pythonPath(), ['-c', make, model]);
    expect(readFileSync(join(model, 'model.safetensors')).includes('experts.0.gate_proj.weight')).toBe(true);
    const { lora: paper } = campaign().training;
    expect(await checkModel(campaign({ model }), pythonPath())).toMatchObject({
      ok: false,
      detail: `training.lora.targetModules: ${model} has no module gate_proj, up_proj, down_proj that a LoRA can train`,
      fix: 'name modules of this base: k_proj, o_proj, q_proj, v_proj',
    });
    const attention = paper.targetModules.slice(0, 4);
    expect(await checkModel(campaign({ model, ...lora(attention) }), pythonPath())).toEqual(
      passed('base model', model),
    );
  });

  it('weights that were not downloaded, or not to their end', async () => {
    const model = temporary();
    cpSync(resolve('models/base'), model, { recursive: true });
    const weights = join(model, 'model.safetensors');
    truncateSync(weights, 1000);
    expect(await checkModel(campaign({ model }), pythonPath())).toMatchObject({
      ok: false,
      detail: expect.stringMatching(`^trainer check-model: ${weights} is not whole: .*; download it anew$`),
    });
    writeFileSync(weights, 'version https://git-lfs.github.com/spec/v1\noid sha256:1\nsize 4\n');
    expect((await checkModel(campaign({ model }), pythonPath())).detail).toContain(
      `${weights} is a git-lfs pointer and not the file itself; run \`git lfs pull\` in ${model}`,
    );
  });

  it('a chat template that shows the target’s tools', async () => {
    const model = temporary();
    const tools = [{ name: 'find', description: '', parameters: { type: 'object' as const } }];
    const described = (offered: typeof tools) => ({ tools: offered }) as unknown as EnvironmentDescription;
    const file = join(model, 'chat_template.jinja');
    expect(checkTemplate(campaign({ model }), described(tools))).toBeUndefined();
    writeFileSync(join(model, 'config.json'), '{}');
    expect(checkTemplate(campaign({ model }), described([]))).toMatchObject({ ok: false, detail: `${model} has none` });
    writeFileSync(join(model, 'tokenizer_config.json'), '{"chat_template": "{{ messages }} {{ tools }}"}');
    expect(checkTemplate(campaign({ model }), described(tools))).toMatchObject({ ok: true, detail: 'shows tools' });
    writeFileSync(file, '{{ messages[0].content }} my tools_of_trade');
    expect(checkTemplate(campaign({ model }), described([]))).toMatchObject({ ok: true });
    expect(checkTemplate(campaign({ model }), described(tools))).toMatchObject({
      ok: false,
      detail: `that of ${model} does not show tools, and the target has 1: no rollout could call one`,
      fix: expect.stringContaining(`let ${file} show them`),
    });
    expect(checkTemplate(campaign({ model, url: 'http://127.0.0.1:2' }), described(tools))).toBeUndefined();
    expect((await checkTarget(campaign({ model }), homeAt(temporary())))[1]).toMatchObject({
      name: 'chat template',
      ok: false,
    });
  });

  it('a target that describes itself, and parts that can work on it', async () => {
    expect(await checkTarget(campaign(), homeAt(temporary()))).toEqual([
      {
        name: 'target environment',
        ok: true,
        detail: expect.stringMatching(/^shop 1: reference actions, \d+ rules, output schemas of 2 of 7 tools$/),
      },
      { name: 'analyst', ok: true, detail: 'rules' },
      { name: 'synthesizer', ok: true, detail: 'generators' },
    ]);
  });

  it('a target that has fewer tasks than the file asks for', async () => {
    const { evaluation, training } = campaign();
    const detail = async (over: Partial<Campaign>) => (await checkTarget(campaign(over), homeAt(temporary())))[0];
    expect(await detail({ evaluation: { ...evaluation, skip: 100_000 } })).toMatchObject({
      ok: false,
      detail: expect.stringMatching(/^evaluation\.skip is 100000, but the target has \d+ test tasks; lower it to/),
    });
    const arms = [{ kind: 'grpo_target' }];
    expect(await detail({ arms, training: { ...training, groupsPerStep: 10_000 } })).toMatchObject({
      ok: false,
      detail: expect.stringMatching(/^training\.groupsPerStep is 10000, but the target has \d+ train tasks/),
    });
  });

  it('a target that its analyst can not work on is a lack, one that no environment can be synthesized for is none', async () => {
    const command = [process.execPath, resolve('test/support/two-party.mjs')];
    const [target, analyst, synthesizer] = await checkTarget(
      campaign({ target: { kind: 'process', command }, arms: [] }),
      homeAt(temporary()),
    );
    expect(target).toMatchObject({
      ok: true,
      detail: 'phone 1: no reference actions, no rules, output schemas of 0 of 1 tools',
    });
    expect(analyst).toMatchObject({
      ok: false,
      detail: expect.stringMatching(
        /reference actions.*analyst: \{kind: llm, .* or \{kind: given, capabilities: FILE\}/,
      ),
      fix: 'change the field analyst of the campaign file',
    });
    expect(synthesizer).toMatchObject({
      ok: true,
      warning: true,
      detail: expect.stringMatching(
        /^capabilities will end not_synthesized and get no adapter; generators: .*give one an outputSchema/,
      ),
    });
    expect(warningsOf([target!, synthesizer!])).toEqual([`synthesizer: ${synthesizer?.detail}`]);
  });

  it('parts that can not be opened', async () => {
    const checks = await checkTarget(
      campaign({
        analyst: { kind: 'given', capabilities: '/no/file.json' },
        synthesizer: { kind: 'given', modules: '/no/modules' },
      }),
      homeAt(temporary()),
    );
    expect(checks.map(({ name, ok }) => [name, ok])).toEqual([
      ['target environment', true],
      ['analyst', false],
      ['synthesizer', false],
    ]);
    expect(checks[1]).toMatchObject({
      detail: expect.stringContaining('/no/file.json'),
      fix: 'correct the field analyst of the campaign file',
    });
    expect(checks[2]?.detail).toMatch(/^synthesizer\.modules: \/no\/modules cannot be read/);
  });

  it('parts that work on the rollouts are no lack of a run that stops after these', async () => {
    const over = {
      synthesizer: { kind: 'given', modules: '/no/modules' },
      evaluation: { ...campaign().evaluation, skip: 100_000 },
    };
    const checks = (until: Stage) => checkTarget(campaign(over), homeAt(temporary()), { until });
    expect((await checks('selection')).filter(({ ok }) => !ok).map(({ name }) => name)).toEqual([
      'target environment',
      'synthesizer',
    ]);
    const all = await checks('rollouts');
    expect(all.filter(({ ok }) => !ok)).toEqual([]);
    expect(warningsOf(all)).toEqual([
      expect.stringMatching(
        /^synthesizer: needed after the rollouts: .*\/no\/modules.*; correct the field synthesizer/,
      ),
    ]);
  });

  it('kinds of somebody else are asked like the project’s own', async () => {
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
    const checks = await checkTarget({ ...campaign(), analyst: { kind: 'mine' } }, homeAt(temporary()), {
      registry: { ...registry, analysts: [analyst] },
    });
    expect(checks[1]).toMatchObject({ ok: false, detail: 'shop is not for me' });
  });

  it('a target has as long to answer as the campaign gives it', async () => {
    const command = ['/bin/sh', '-c', `sleep 2; exec ${process.execPath} test/support/two-party.mjs`];
    const check = async (silenceSeconds: number) =>
      (
        await checkTarget(
          campaign({ target: { kind: 'process', command, silenceSeconds }, arms: [] }),
          homeAt(temporary()),
        )
      )[0];
    expect(await check(1)).toMatchObject({
      ok: false,
      detail: expect.stringMatching(/has not answered describe for 1 s and was killed; .* set silenceSeconds higher/),
    });
    expect(await check(30)).toMatchObject({ ok: true });
  }, 20_000);

  it('a target command that dies', async () => {
    const command = [process.execPath, '-e', "console.error('no database'); process.exit(7)"];
    const [check, ...parts] = await checkTarget(
      campaign({ target: { kind: 'process', command } }),
      homeAt(temporary()),
    );
    expect(check?.ok).toBe(false);
    expect(check?.detail).toMatch(/does not describe itself: .*(exit code 7|no database)/);
    expect(check?.fix).toContain('campaign env check --');
    expect(parts.map(({ detail }) => detail)).toEqual([
      'rules, not held against the target',
      'generators, not held against the target',
    ]);
  });

  it('a policy server that does not answer', async () => {
    const url = `http://127.0.0.1:${await freePort()}`;
    expect(await checkPolicyServer(campaign({ url }))).toMatchObject({
      ok: false,
      detail: expect.stringContaining(`${url}: `),
      fix: 'start it, or correct policyServer.url in the campaign file',
    });
  });
});

describe('the base’s tokenizer', () => {
  const home = homeAt(temporary());
  const base = resolve('models/base');

  it('knows the target that its base was made for', async () => {
    expect(await checkTokens({ campaign: campaign({ model: base }), home })).toMatchObject({
      name: 'base tokenizer',
      ok: true,
      detail: expect.stringMatching(/^0% of the target's text \(0 of \d+ tokens\) is unknown/),
    });
  });

  it('does not know plain English, of which the written policy is enough where the user has no model here', async () => {
    const command = [process.execPath, resolve('test/support/library.mjs')];
    const plain = campaign({ model: base, target: { kind: 'process', command } });
    expect(await checkTokens({ campaign: plain, home })).toMatchObject({
      ok: false,
      detail: expect.stringMatching(/^\d\d% of the target's text .* most often .*"book"/),
      fix: "take a base whose vocabulary has the target's words (baseModel.path), or run with --force",
    });
    const twoParties = [process.execPath, resolve('test/support/two-party.mjs')];
    const phone = campaign({ model: base, target: { kind: 'process', command: twoParties } });
    expect((await checkTokens({ campaign: phone, home }))?.detail).toContain('(2 of 2 tokens)');
  });

  it('that is missing or broken', async () => {
    const model = temporary();
    expect(await checkTokens({ campaign: campaign({ model }), home })).toMatchObject({
      ok: true,
      detail: expect.stringContaining('no tokenizer.json'),
    });
    writeFileSync(join(model, 'tokenizer.json'), '{');
    expect(await checkTokens({ campaign: campaign({ model }), home })).toMatchObject({
      ok: false,
      detail: expect.stringMatching(/^trainer check-tokens: .*tokenizer\.json/),
    });
    expect(
      await checkTokens({ campaign: campaign({ target: { kind: 'process', command: ['/no/target'] } }), home }),
    ).toBe(undefined);
  });
});

describe('a vLLM server', () => {
  const model = { id: 'qwen', max_model_len: 32_768 };
  /** Answers as vLLM does. */
  async function serving(
    o: { models?: object[]; status?: number; page?: string },
    check: (url: string) => Promise<void>,
  ) {
    const seen: IncomingMessage[] = [];
    const server = createServer((request, response) => {
      seen.push(request);
      if (request.url === '/health') return void response.end();
      response.writeHead(o.status ?? 200).end(o.page ?? JSON.stringify({ data: o.models ?? [model] }));
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    try {
      await check(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
    } finally {
      server.close();
    }
    return seen.map(({ method, url }) => `${method} ${url}`);
  }
  const named = (url: string) =>
    campaign({ policyServer: { kind: 'vllm', url, model: 'qwen', contextTokens: 32_768, gpus: 1 } });

  it('is tried with adapters of the campaign’s rank and with their sum', async () => {
    const server = await startDialectServer();
    const asked = campaign({ model: resolve('models/base'), url: server.url });
    asked.training.lora.targetModules = ['q_proj'];
    const home = homeAt(temporary());
    const check = () => checkAdapters({ campaign: asked, home, python: pythonPath() });
    const upTo = (most: number): void => {
      server.load = ({ lora_name: name, lora_path: path }, response) => {
        const { r } = JSON.parse(readFileSync(join(String(path), 'adapter_config.json'), 'utf8')) as { r: number };
        const message = `Call to add_lora method failed: LoRA rank ${r} is greater than max_lora_rank ${most}.`;
        if (r > most) return refuse(500, { message })({}, response);
        server.adapters.set(String(name), String(path));
        response.end('ok');
      };
    };
    try {
      server.root = '/models/mine';
      upTo(64);
      expect(await check()).toMatchObject({ ok: true, detail: 'of rank 16, and sums of 4 of them, are taken' });
      expect([...server.adapters.keys()]).toEqual([]);
      upTo(32);
      expect(await check()).toMatchObject({
        ok: true,
        warning: true,
        detail: expect.stringMatching(/--max-lora-rank 64$/),
      });
      upTo(8);
      expect(await check()).toMatchObject({ ok: false, detail: expect.stringMatching(/--max-lora-rank 16$/) });
    } finally {
      await server.close();
    }
  }, 240_000);

  it('that has all that is needed is asked without a change', async () => {
    const calls = await serving({ models: [{ id: 'a-1', parent: 'qwen' }, model] }, async (url) =>
      expect(await checkPolicyServer(named(url))).toMatchObject({ ok: true }),
    );
    expect(calls).toEqual(['GET /health', 'GET /v1/models']);
  });

  const cases: [string, Parameters<typeof serving>[0], RegExp][] = [
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
    [
      'that is not at this address',
      { status: 404, page: 'Not Found' },
      /\/v1\/models says Not Found; name the address/,
    ],
  ];
  it.each(cases)('%s', async (_what, answers, said) => {
    await serving(answers, async (url) => {
      const { ok, detail, fix } = await checkPolicyServer(named(url));
      expect(ok).toBe(false);
      expect([detail, ...(fix ? [fix] : [])].join('; ')).toMatch(said);
    });
  });
});

describe('a benchmark', () => {
  const tau2 = (checkout?: string) =>
    campaign({ target: { kind: 'tau2', domains: ['mock'], ...(checkout && { checkout }) } });
  const toolsandbox = (folder: string) => campaign({ target: { kind: 'toolsandbox', folder } });

  it('whose bridge is not installed', () => {
    expect(checkBridge(tau2(), { root: temporary() })).toEqual([
      { name: 'bridge', ok: false, detail: '.venv-bridges is not installed', fix: 'run `make bridges`' },
    ]);
    expect(checkBridge(toolsandbox('/none'), { root: temporary() }).map(({ fix }) => fix)).toEqual([
      'run `make bridges-toolsandbox`',
      'name a checkout in target.folder',
    ]);
    expect(checkBridge(campaign(), { root: temporary() })).toEqual([]);
  });

  it('with what it needs, and a folder that is none', () => {
    const root = temporary();
    for (const folder of ['.venv-bridges', 'checkout/src/tau2']) mkdirSync(join(root, folder), { recursive: true });
    writeFileSync(join(root, '.venv-bridges/.installed'), '');
    expect(checkBridge(tau2(join(root, 'checkout')), { root }).map(({ ok }) => ok)).toEqual([true, true]);
    expect(checkBridge(tau2(root), { root })[1]).toMatchObject({ ok: false, detail: `${root} holds no src/tau2` });
  });
});

describe('GPUs', () => {
  const asking = (gpuSlots: number, gpusPerTrainer: number) =>
    campaign({ workers: { gpuSlots, gpusPerTrainer, heartbeatSeconds: 600, stallSeconds: 1800 } });
  const program = join(temporary(), 'nvidia-smi');
  beforeAll(() => {
    writeFileSync(program, '#!/bin/sh\nfor i in 0 1 2 3; do echo "$i, A100, 81920 MiB"; done\n');
    chmodSync(program, 0o755);
  });

  it('are counted against the layout', async () => {
    expect(await checkGpus(asking(2, 0))).toBeUndefined();
    expect(await checkGpus(asking(1, 4), { program, visible: '0,1,2,3' })).toMatchObject({ ok: true });
    expect(await checkGpus(asking(1, 2), { program, visible: '2,3' })).toMatchObject({
      ok: true,
      detail: expect.stringContaining('2 of 4'),
    });
    expect(await checkGpus(asking(2, 2), { program, visible: '2,3' })).toMatchObject({
      ok: false,
      detail: expect.stringMatching(/4 needed$/),
      fix: 'use a machine with 4 for the trainers, or lower workers.gpuSlots 2 x workers.gpusPerTrainer 2',
    });
  });

  it('of a machine without nvidia-smi', async () => {
    expect(await checkGpus(asking(1, 1), { program: '/none/nvidia-smi' })).toMatchObject({
      ok: false,
      detail: expect.stringContaining('nvidia-smi'),
    });
  });
});

describe('the machine', () => {
  it('versions and sizes', () => {
    expect(checkNode('20.19.0').ok).toBe(true);
    expect(checkNode('22.1.0').ok).toBe(true);
    expect(checkNode('20.18.3')).toMatchObject({ ok: false, fix: 'install Node 20.19 or newer' });
    expect(checkMemory(4 * 1024 ** 3).ok).toBe(false);
    expect(checkMemory(6 * 1024 ** 3).ok).toBe(true);
  });

  it('a project that is not built', () => {
    expect(checkBuild(temporary())).toMatchObject({ ok: false, fix: 'run `make build`' });
  });

  it('a home that cannot be a folder', () => {
    const folder = temporary();
    writeFileSync(join(folder, 'file'), '');
    expect(checkHome(homeAt(join(folder, 'file/home')))).toMatchObject({ ok: false });
    mkdirSync(join(folder, 'there'));
    expect(checkHome(homeAt(join(folder, 'there/later'))).ok).toBe(true);
  });

  it('a home with too little room, and one with too little for the size of the paper', () => {
    const home = homeAt(temporary());
    expect(checkHome(home, campaign(), () => 1.5)).toMatchObject({
      ok: false,
      fix: expect.stringMatching(/^free 2 GiB/),
    });
    expect(checkHome(home, campaign({ url: 'http://gpu:8000' }), () => 44)).toEqual({
      ...{ name: 'home folder', ok: true, warning: true },
      detail: `${home.root}, 44.0 GiB free; a campaign of the paper's size takes 50 GiB`,
    });
  });
});

it('what is missing is one line, first in the error', () => {
  const checks = [checkNode('20.19.0'), checkNode('18.1.0'), checkBuild(temporary())];
  expect(() => requireAll(checks)).toThrow('Node: version 18.1.0; install Node 20.19 or newer');
  expect(doctorLines(checks)).toEqual([
    'ok       Node   20.19.0',
    'missing  Node   version 18.1.0; install Node 20.19 or newer',
    'missing  build  dist/workers/worker.js is missing; run `make build`',
  ]);
  expect(doctorLines(checks, 48).slice(1)).toEqual([
    'missing  Node   version 18.1.0; install Node\n                20.19 or newer',
    'missing  build  dist/workers/worker.js is\n                missing; run `make build`',
  ]);
  expect(doctorLines(checks, 30)[1]).toBe('missing  Node   version\n  18.1.0; install Node 20.19\n  or newer');
});
