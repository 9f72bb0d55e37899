import { existsSync, mkdtempSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { z } from 'zod';
import { configDigests, loadCampaign, termsDigest, type CampaignOverrides } from '../../../src/cli/campaign-file';
import { removed } from '../../../src/cli/campaign-issues';
import { campaignReference } from '../../../src/cli/campaign-reference';
import { campaignFileSchema, campaignJsonSchema, type JsonSchemaNode } from '../../../src/cli/campaign-schema';
import { UserError } from '../../../src/cli/errors';
import { chatModelSchema } from '../../../src/domain/endpoints';
import { defineKind } from '../../../src/domain/kinds';
import type { Stage } from '../../../src/domain/work';
import { registry } from '../../../src/registry';

const repository = resolve(__dirname, '../../..');
const base = `name: mine
target:
  kind: builtin
  name: shop
baseModel:
  path: models/small
`;

function write(text: string): string {
  const file = join(mkdtempSync(join(tmpdir(), 'campaign-file-')), 'mine.yaml');
  writeFileSync(file, text);
  return file;
}
const load = (text: string, overrides: CampaignOverrides = {}) => loadCampaign({ file: write(text), overrides });

const digestOf = async (o: Parameters<typeof configDigests>[0]) => (await configDigests(o)).evaluation;

function problems(text: string): string[] {
  const file = write(text);
  try {
    loadCampaign({ file });
  } catch (error) {
    if (error instanceof UserError)
      return [error.message, ...error.evidence].map((line) => line.replace(file, 'mine.yaml'));
    throw error;
  }
  return [];
}

describe('a campaign file', () => {
  it('has the paper’s values where it says nothing', () => {
    const campaign = load(base);
    expect(campaign.training.learningRate).toBe(1e-5);
    expect(campaign.calibration.seeds).toBe(100);
    expect(campaign).toMatchObject({
      analyst: { kind: 'rules' },
      synthesizer: { kind: 'generators' },
      router: { kind: 'learned', tasks: 200, folds: 5 },
      arms: [{ kind: 'grpo_target' }],
    });
  });

  it('has its own values over those of the preset, field by field', () => {
    const campaign = load(`${base}preset: demo\ntraining:\n  steps: 3\n  lora: { r: 4 }\n`);
    expect(campaign.training).toMatchObject({ steps: 3, groupsPerStep: 4, learningRate: 0.002 });
    expect(campaign.training.lora).toMatchObject({ r: 4, alpha: 16 });
    expect(campaign.training.lora.targetModules).toContain('in_proj');
  });

  it('replaces an object of another kind whole', () => {
    const campaign = load(`${base}preset: demo\npolicyServer: { kind: vllm, url: 'http://gpu:8000' }\n`);
    expect(campaign.policyServer).toMatchObject({ kind: 'vllm', url: 'http://gpu:8000' });
    expect(campaign.policyServer).not.toHaveProperty('threads');
  });

  it('resolves paths from its own folder', () => {
    const file = write(
      base.replace('kind: builtin\n  name: shop', 'kind: process\n  command: [node, env.js]\n  cwd: bridge'),
    );
    const campaign = loadCampaign({ file });
    expect(campaign.baseModel.path).toBe(join(file, '../models/small'));
    expect(campaign.target).toMatchObject({ cwd: join(file, '../bridge') });
    const other = write(base.replace('kind: builtin\n  name: shop', 'kind: process\n  command: [node, env.js]'));
    expect(loadCampaign({ file: other }).target).toMatchObject({ cwd: dirname(other), processes: 1 });
  });

  it('has the default kind of a part that is given without one', () => {
    const campaign = load(`${base}preset: demo\nrouter: { tasks: 30, folds: 3 }\n`);
    expect(campaign.router).toEqual({
      kind: 'learned',
      tasks: 30,
      trials: 1,
      folds: 3,
    });
  });

  describe('with kinds of somebody else', () => {
    const kind = defineKind({
      kind: 'mine',
      version: '1',
      options: { file: z.string(), other: z.string().optional(), spread: z.number().default(3) },
      paths: ['file', 'other'],
      open: () => {
        throw new Error('a campaign file is read without opening anything');
      },
    });
    const all = {
      environments: [kind],
      analysts: [...registry.analysts, kind],
      synthesizers: [...registry.synthesizers, kind],
      routers: [...registry.routers, kind],
      arms: [{ ...kind, routable: false, starts: 'beside' as const, planned: () => ({ training: 0, heldOut: 0 }) }],
    };
    const text = `name: mine
baseModel: { path: base }
target: { kind: mine, file: a }
analyst: { kind: mine, file: b, other: c/d }
synthesizer: { kind: mine, file: e, spread: 4 }
router: { kind: mine, file: /f }
arms: [{ kind: mine, file: g }, { kind: mine, file: h, name: again }]
`;

    it('completes their options, and makes those that are paths absolute', () => {
      const file = write(text);
      const at = (path: string) => join(dirname(file), path);
      expect(loadCampaign({ file, registry: all })).toMatchObject({
        baseModel: { path: at('base') },
        target: { kind: 'mine', file: at('a'), spread: 3 },
        analyst: { kind: 'mine', file: at('b'), other: at('c/d'), spread: 3 },
        synthesizer: { kind: 'mine', file: at('e'), spread: 4 },
        router: { kind: 'mine', file: '/f', tasks: 200, trials: 1, spread: 3 },
        arms: [
          { kind: 'mine', file: at('g'), spread: 3 },
          { kind: 'mine', file: at('h'), spread: 3, name: 'again' },
        ],
      });
    });

    it('has a digest of what the file says and what its parts read, wherever it lies', async () => {
      let content = 'one';
      const opened = { ...kind, open: () => ({ identity: { kind: 'mine', version: '1', options: { content } } }) };
      const readable = { ...all, analysts: [opened], synthesizers: [opened] } as unknown as typeof registry;
      const digest = (one: string) => {
        const file = write(one.replace('/f', 'f'));
        return digestOf({ campaign: loadCampaign({ file, registry: all }), file, registry: readable });
      };
      const first = await digest(text);
      expect(await digest(text)).toBe(first);
      expect(await digest(text.replace('file: g', 'file: i'))).not.toBe(first);
      content = 'two';
      expect(await digest(text)).not.toBe(first);
      const file = write(text);
      const unreadable = configDigests({ campaign: loadCampaign({ file, registry: all }), file, registry: all });
      await expect(unreadable).rejects.toThrow(UserError);
    });
  });

  it('gets its seed in the name when another one is asked for', () => {
    expect(load(base, { seed: 7 })).toMatchObject({ name: 'mine-7', seed: 7 });
    expect(load(base, { seed: 1 })).toMatchObject({ name: 'mine', seed: 1 });
    expect(load(base, { seed: 7, name: 'other' })).toMatchObject({ name: 'other', seed: 7 });
  });

  it('gets a training seed in the name, where it is another than its own', () => {
    const own = `${base}trainingSeed: 5\n`;
    const named = (text: string, overrides: CampaignOverrides) => {
      const { name, seed, trainingSeed } = load(text, overrides);
      return [name, seed, trainingSeed];
    };
    expect(named(base, { trainingSeed: 2 })).toEqual(['mine-s2', 1, 2]);
    expect(named(base, { trainingSeed: 1 })).toEqual(['mine', 1, undefined]);
    expect(named(base, { seed: 7, trainingSeed: 2 })).toEqual(['mine-7-s2', 7, 2]);
    expect(named(base, { seed: 7, trainingSeed: 7 })).toEqual(['mine-7', 7, undefined]);
    expect(named(own, { trainingSeed: 5 })).toEqual(['mine', 1, 5]);
    expect(named(own, { trainingSeed: 1 })).toEqual(['mine-s1', 1, 1]);
  });

  const shipped = readdirSync(join(repository, 'campaigns')).filter((file) => file.endsWith('.yaml'));
  it.each(shipped)('%s that is shipped is valid', (file) => {
    const campaign = loadCampaign({ file: join(repository, 'campaigns', file) });
    expect(campaign.name).toBe(file.replace('.yaml', ''));
    // Shipped, or made by `make real-model`.
    expect(['models', '.cache'].map((folder) => join(repository, folder))).toContain(dirname(campaign.baseModel.path));
  });

  const onGpus = shipped.filter((file) => /qwen3/.test(file));
  it.each(onGpus)('%s fits the vLLM that it describes, and has time for its steps', (file) => {
    const path = join(repository, 'campaigns', file);
    const { policyServer, training, workers } = loadCampaign({ file: path });
    if (policyServer.kind !== 'vllm') throw new Error('no vLLM');
    const comment = readFileSync(path, 'utf8').split('\nname: ')[0]!.replaceAll('\n#', '');
    const flag = (name: string) => new RegExp(` --${name} ([^-]+?) (?:\\\\|--|#)`).exec(`${comment} #`)?.[1]!.trim();
    expect(comment).toContain(`VLLM_ALLOW_RUNTIME_LORA_UPDATING=True`);
    expect(comment).toContain(`vllm serve ${policyServer.model} `);
    expect(comment).toContain('Nothing of this file has been run on a GPU');
    expect(flag('max-model-len')).toBe(String(policyServer.contextTokens));
    expect(flag('generation-config')).toBe('vllm');
    expect(flag('lora-target-modules')!.split(/\s+/)).toEqual(training.lora.targetModules);
    expect([1, 8, 16, 32, 64, 128, 256, 320, 512]).toContain(Number(flag('max-lora-rank')));
    // Four capabilities, and a composite that begins as their sum.
    expect(Number(flag('max-lora-rank'))).toBeGreaterThanOrEqual(8 * training.lora.r);
    // In a mixture of experts there are no others.
    if (/A\d+B/.test(policyServer.model!))
      expect(training.lora.targetModules).toEqual(['q_proj', 'k_proj', 'v_proj', 'o_proj']);
    expect(workers.stallSeconds).toBeGreaterThanOrEqual(workers.heartbeatSeconds);
    const tokens = training.groupsPerStep * training.groupSize * policyServer.contextTokens;
    expect(workers.stallSeconds).toBeGreaterThan(tokens / 1000);
  });

  it('has a digest that changes with any value and not with the place of the checkout', async () => {
    const [one, two] = [write(base), write(base)];
    const digest = (file: string) => digestOf({ campaign: loadCampaign({ file }), file });
    expect(await digest(one)).toBe(await digest(two));
    const changed = write(`${base}training: { steps: 21 }\n`);
    expect(await digest(changed)).not.toBe(await digest(one));
    expect(await digest(write(`${base}training: { steps: 20 }\n`))).toBe(await digest(one));
    // What may be spent, what waits for approval, and how many rollouts may break, is changed under the same name.
    for (const term of [
      'budget: { tokens: 1000 }',
      'approval: { capabilities: true }',
      'rollouts: { maxBrokenShare: 0.5 }',
    ]) {
      const raised = write(`${base}${term}\n`);
      expect(await digest(raised)).toBe(await digest(one));
      expect(termsDigest(loadCampaign({ file: raised }))).not.toBe(termsDigest(loadCampaign({ file: one })));
    }
  });

  it('has a digest that says nothing of where, how fast and how patiently it is worked', async () => {
    const digests = async (lines: string) => {
      const file = write(base + lines);
      const campaign = loadCampaign({ file });
      return [await digestOf({ campaign, file }), termsDigest(campaign)];
    };
    const vllm = (rest: string) => `policyServer: { kind: vllm, url: 'http://127.0.0.1:8000'${rest} }\n`;
    const [embedded, other] = [await digests(''), await digests(vllm(''))];
    for (const lines of [
      'policyServer: { kind: embedded, threads: 3, maxBatch: 5 }',
      'rollouts: { concurrency: 3, maxAttempts: 7 }',
      'workers: { pool: night, gpuSlots: 3, heartbeatSeconds: 77 }',
    ])
      expect(await digests(`${lines}\n`)).toEqual(embedded);
    expect(await digests("policyServer: { kind: vllm, url: 'http://127.0.0.2:8', model: m, gpus: 2 }\n")).toEqual(
      other,
    );
    const target = (options: string, host: string) =>
      base.replace(
        'kind: builtin\n  name: shop',
        `kind: process\n  command: [x]\n  user: { url: 'http://${host}/v1', model: m${options} }`,
      );
    const withUser = async (options: string, host = 'h') => {
      const file = write(target(options, host));
      return digestOf({ campaign: loadCampaign({ file }), file });
    };
    const same = await withUser('');
    expect(await withUser(', price: { input: 1, output: 2 }')).toBe(same);
    expect(await withUser(', concurrency: 3, timeoutSeconds: 9')).toBe(same);
    expect(await withUser(', temperature: 1')).not.toBe(same);
    expect(await withUser('', 'elsewhere')).toBe(same);
    // The context that a server has, and whether it is ours, decides rollouts.
    expect(other).not.toEqual(embedded);
    expect(await digests(vllm(', contextTokens: 4096'))).not.toEqual(other);
    expect(await digests('rollouts: { perTask: 3 }\n')).not.toEqual(embedded);
  });
});

describe('the digest of a campaign that ends early', () => {
  const digests = (text: string, until?: Stage) => {
    const file = write(text);
    return configDigests({ campaign: loadCampaign({ file }), file, until });
  };

  it.each<[Stage, unchanged: string[], changed: string]>([
    [
      'rollouts',
      [
        'analyst: { kind: llm, url: http://127.0.0.1:8000, model: m }',
        'selection: { votes: 7 }',
        'validation: { seeds: 9 }',
        'evaluation: { skip: 3 }',
      ],
      'validation: { targetTasks: 9 }',
    ],
    [
      'selection',
      ['training: { steps: 21 }', 'synthesizer: { kind: llm, url: http://127.0.0.1:8000, model: m }'],
      'selection: { votes: 7 }',
    ],
    ['capabilities', ['router: { kind: learned, tasks: 9 }', 'evaluation: { trials: 3 }'], 'training: { steps: 21 }'],
    ['router', ['evaluation: { trials: 3 }'], 'router: { kind: learned, tasks: 9 }'],
  ])('after %s says what it has used and no more', async (stage, unchanged, changed) => {
    const first = await digests(base);
    for (const line of unchanged) {
      const edited = await digests(`${base}${line}\n`);
      expect(edited[stage]).toBe(first[stage]);
      expect(edited.evaluation).not.toBe(first.evaluation);
    }
    expect((await digests(`${base}${changed}\n`))[stage]).not.toBe(first[stage]);
  });

  it('is there where what only later stages read is not', async () => {
    const text = `${base}analyst: { kind: given, capabilities: none.json }\n`;
    await expect(digests(text)).rejects.toThrow('none.json');
    expect(await digests(text, 'rollouts')).toEqual({ rollouts: (await digests(base)).rollouts });
  });
});

describe('a mistake in a campaign file is one line with place, value and fix:', () => {
  const cases: [string, string, string | RegExp][] = [
    ['a typo', `${base}trainning: {}\n`, "mine.yaml:7 unknown field 'trainning'; did you mean 'training'?"],
    [
      'a typo inside',
      `${base}training:\n  steps: 3\n  learningrate: 1\n`,
      "mine.yaml:9 unknown field 'training.learningrate'; did you mean 'learningRate'?",
    ],
    ['a type', `${base}training:\n  steps: many\n`, 'mine.yaml:8 training.steps is "many"; expected number'],
    ['a fraction', `${base}training:\n  steps: 2.5\n`, 'mine.yaml:8 training.steps is 2.5; expected int'],
    ['a bound', `${base}selection: { rho: 1.5 }\n`, 'mine.yaml:7 selection.rho is 1.5; expected number to be <=1'],
    [
      'more steps than anybody trains',
      `${base}training: { steps: 1000000000 }\n`,
      'mine.yaml:7 training.steps is 1000000000; expected number to be <=1000000',
    ],
    [
      'more rollouts than anybody has',
      `${base}training:\n  groupSize: 100000\n  steps: 1000\n`,
      'mine.yaml:9 training.steps is 1000; it must be at most 3 with groupsPerStep 32 and groupSize 100000: these are 3200000000 rollouts for an adapter, of at most 10000000',
    ],
    [
      'a command as text',
      `name: mine\ntarget: { kind: process, command: python3 x.py }\nbaseModel: { path: m }\n`,
      'mine.yaml:2 target.command is "python3 x.py"; it must be a list, such as [python3, x.py]',
    ],
    [
      'half the name of a kind',
      `${base}arms: [{ kind: grpo }]\n`,
      /mine\.yaml:7 arms\[0\]\.kind is "grpo"; it must be one of .*; did you mean 'grpo_target'\?$/,
    ],
    [
      'a port of another protocol',
      `${base}policyServer: { kind: vllm, url: 'http://gpu:6000' }\n`,
      'mine.yaml:7 policyServer.url is "http://gpu:6000"; it must be a URL with another port: 6000 is of another protocol, and HTTP clients refuse it',
    ],
    [
      'a limit on silence that a busy machine breaks',
      `${base}workers: { heartbeatSeconds: 5 }\n`,
      'mine.yaml:7 workers.heartbeatSeconds is 5; expected number to be >=20',
    ],
    [
      'a trainer that may say nothing for less time than its worker',
      `${base}workers:\n  heartbeatSeconds: 300\n  stallSeconds: 60\n`,
      'mine.yaml:9 workers.stallSeconds is 60; it must be at least workers.heartbeatSeconds (300); set it to that or more',
    ],
    [
      'the same with the default',
      `${base}workers: { heartbeatSeconds: 3600 }\n`,
      'mine.yaml:7 workers.stallSeconds is missing; it must be at least workers.heartbeatSeconds (3600); set it to that or more',
    ],
    [
      'a gate behind a server that serves none',
      `${base}router: { kind: moe_gate }\npolicyServer: { kind: vllm, url: 'http://gpu:8000' }\n`,
      'mine.yaml:7 router.kind is "moe_gate"; it must be another kind with policyServer.kind vllm, which serves no gate; change it, or set policyServer.kind to embedded',
    ],
    [
      'a band with one end',
      `${base}calibration:\n  meanReward: [0.2]\n`,
      'mine.yaml:8 calibration.meanReward is [0.2]; expected array to have >=2 items',
    ],
    [
      'a name',
      base.replace('mine', 'My Run'),
      'mine.yaml:1 name is "My Run"; it must be lower-case letters, digits and dashes',
    ],
    [
      'a target that does not exist',
      base.replace('name: shop', 'name: shpo'),
      'mine.yaml:4 target.name is "shpo"; it must be one of shop, instructions; did you mean \'shop\'?',
    ],
    [
      'a parameter of another built-in environment',
      base.replace('name: shop', 'name: instructions\n  requests: 2'),
      "mine.yaml:5 unknown field 'target.requests'; allowed here: kind, name, trainTasks, testTasks",
    ],
    [
      'a built-in environment that there is not',
      base.replace('name: shop', 'name: shpo'),
      'mine.yaml:4 target.name is "shpo"; it must be one of shop, instructions; did you mean \'shop\'?',
    ],
    [
      'more requests than the shop has',
      base.replace('name: shop', 'name: shop\n  requests: 4'),
      'mine.yaml:5 target.requests is 4; expected number to be <=3',
    ],
    [
      'half a request',
      base.replace('name: shop', 'name: shop\n  requests: 1.5'),
      'mine.yaml:5 target.requests is 1.5; expected int',
    ],
    [
      'a share above the whole',
      base.replace('name: shop', 'name: shop\n  several: 1.2'),
      'mine.yaml:5 target.several is 1.2; expected number to be <=1',
    ],
    [
      'no test tasks',
      base.replace('name: shop', 'name: shop\n  testTasks: 0'),
      'mine.yaml:5 target.testTasks is 0; expected number to be >=1',
    ],
    [
      'a parameter that the shop does not have',
      base.replace('name: shop', 'name: shop\n  testTask: 300'),
      "mine.yaml:5 unknown field 'target.testTask'; did you mean 'testTasks'?",
    ],
    [
      'a kind that does not exist',
      base.replace('kind: builtin', 'kind: bultin'),
      'mine.yaml:3 target.kind is "bultin"; it must be one of builtin, process, tau2, toolsandbox; did you mean \'builtin\'?',
    ],
    [
      'a name that the home needs itself',
      base.replace('mine', 'artifacts'),
      'mine.yaml:1 name is "artifacts"; the home keeps files of its own under that name, choose another',
    ],
    ['a missing field', base.replace(/baseModel[^]*/, ''), 'mine.yaml:1 baseModel is missing; expected object'],
    [
      'a preset',
      `preset: dmeo\n${base}`,
      'mine.yaml:1 preset is "dmeo"; allowed: paper, attention-only, demo, small-model',
    ],
    [
      'an analyst that does not exist',
      `${base}analyst: { kind: rulez }\n`,
      'mine.yaml:7 analyst.kind is "rulez"; it must be one of rules, given, llm; did you mean \'rules\'?',
    ],
    [
      'an analyst as plain text',
      `${base}analyst: given\n`,
      'mine.yaml:7 analyst is "given"; it must be an object, such as { kind: given }',
    ],
    [
      'an arm as plain text',
      `${base}arms: [grpo_target]\n`,
      'mine.yaml:7 arms[0] is "grpo_target"; it must be an object, such as { kind: grpo_target }',
    ],
    [
      'an arm that does not exist',
      `${base}arms:\n  - kind: gropo_target\n`,
      `mine.yaml:8 arms[0].kind is "gropo_target"; it must be one of ${registry.arms.map(({ kind }) => kind).join(', ')}; did you mean 'grpo_target'?`,
    ],
    [
      'two arms of one name',
      `${base}arms:\n  - { kind: grpo_target }\n  - { kind: grpo_target }\n`,
      'mine.yaml:7 arms is [{"kind":"grpo_target"},{"kind":"grpo_target"}]; it must be a list of arms of which each has a name of its own; grpo_target is there twice',
    ],
    [
      'the name of an arm that is always there',
      `${base}arms:\n  - { kind: grpo_target, name: base }\n`,
      'mine.yaml:8 arms[0].name is "base"; it must be another name: the report has this one already',
    ],
    [
      'an option of another kind',
      `${base}analyst: { kind: rules, capabilities: found.json }\n`,
      "mine.yaml:7 unknown field 'analyst.capabilities'; allowed here: kind",
    ],
    [
      'a typo in an option of the default kind',
      `${base}router: { fold: 3 }\n`,
      "mine.yaml:7 unknown field 'router.fold'; did you mean 'folds'?",
    ],
    [
      'an option that is missing',
      `${base}analyst: { kind: given }\n`,
      'mine.yaml:7 analyst.capabilities is missing; expected string',
    ],
    [
      'a target that only campaigns make',
      base.replace('kind: builtin\n  name: shop', 'kind: sandbox\n  module: {}'),
      'mine.yaml:3 target.kind is "sandbox"; it must be one of builtin, process, tau2, toolsandbox',
    ],
    [
      'an empty file',
      '',
      'mine.yaml:1 must be a map of fields (name, target, baseModel, ...), like campaigns/demo.yaml',
    ],
  ];
  it.each(cases)('%s', (_what, text, line) => {
    expect(problems(text)).toEqual([typeof line === 'string' ? line : expect.stringMatching(line)]);
  });

  it('a wait that no timer can hold', () => {
    const model = "url: 'http://h/v1', model: m, timeoutSeconds: 2147484";
    const target = `target: { kind: process, command: [x], user: { ${model} } }\nbaseModel: { path: b }\n`;
    expect(problems(`name: mine\n${target}analyst: { kind: llm, ${model} }\n`)).toEqual([
      expect.stringContaining('target.user.timeoutSeconds is 2147484; expected number to be <=86400'),
      expect.stringContaining('analyst.timeoutSeconds is 2147484; expected number to be <=86400'),
    ]);
  });

  it('several mistakes are several lines', () => {
    expect(problems(`${base}trainning: {}\nseed: -1\n`)).toHaveLength(2);
  });

  it('broken YAML names the line', () => {
    expect(problems(`${base}training: {steps: 3\n`)[0]).toMatch(/^mine\.yaml:\d+ is not YAML: /);
  });

  it('a file that is not there', () => {
    expect(() => loadCampaign({ file: 'none.yaml' })).toThrow('there is no campaign file none.yaml');
  });
});

describe('what campaign files could say before', () => {
  const fileWith = (path: string, value: unknown): object =>
    path.split('.').reduceRight<unknown>((inner, key) => {
      return key.endsWith('[]') ? { [key.slice(0, -2)]: [inner] } : { [key]: inner };
    }, value) as object;

  it.each(removed)('$path $value is refused with its line, why it went and what to do', ({ path, value, why }) => {
    const file = fileWith(path, value ?? true);
    const name = path.replaceAll('[]', '[0]') + (value === undefined ? '' : ` ${value}`);
    const fix = path.startsWith('arms') ? 'delete the arm' : 'delete the line';
    const [[field, inner]] = Object.entries(file) as [[string, unknown]];
    expect(problems(`${base}${field}: ${JSON.stringify(inner)}\n`)).toEqual([
      `mine.yaml:7 ${name}: removed in 0.2: ${why}; ${fix}`,
    ]);
    expect(campaignFileSchema(registry).safeParse({ ...load(base), ...file }).success).toBe(false);
    for (const page of why.match(/docs\/\S+\.md/g) ?? []) expect(existsSync(join(repository, page))).toBe(true);
  });

  it('all of it is told at once, with the place of each', () => {
    expect(
      problems(`${base}arms:\n  - kind: grpo_target\n  - kind: distill\n  - kind: trace_then_joint\n`).map((line) =>
        line.split(':').slice(0, 2).join(':'),
      ),
    ).toEqual(['mine.yaml:9 arms[1].kind distill', 'mine.yaml:10 arms[2].kind trace_then_joint']);
  });
});

describe('a key where none belongs', () => {
  const key = 'sk-proj-1234567890';
  const lines = (fields: string) => problems(`${base}analyst: { kind: llm, model: m, ${fields} }\n`).join('\n');

  it('is refused in apiKeyEnv, and not repeated', () => {
    const text = lines(`url: 'http://h/v1', apiKeyEnv: ${key}`);
    expect(text).toMatch(/analyst\.apiKeyEnv is \(not shown\); it must be the name of an environment variable/);
    expect(text).not.toContain(key);
  });

  it('is refused in url, and not repeated', () => {
    const text = lines(`url: 'https://me:${key}@h/v1'`);
    expect(text).toMatch(/analyst\.url is \(not shown\); it must be a URL without user and password/);
    expect(text).not.toContain(key);
  });

  it('is refused in the urls of a policy server and of embeddings, and not repeated', () => {
    const text = problems(
      `${base}policyServer: { kind: vllm, url: 'http://me:${key}@h' }\n` +
        `router: { kind: label_tokens, embeddings: { url: 'http://me:${key}@h', model: m } }\n`,
    );
    for (const field of ['policyServer', 'router.embeddings'])
      expect(text.join('\n')).toContain(`${field}.url is (not shown); it must be a URL without user and password`);
    expect(text.join('\n')).not.toContain(key);
  });

  it('and an address has http:// before it', () => {
    expect(problems(`${base}policyServer: { kind: vllm, url: 'localhost:8000' }\n`).join('\n')).toContain(
      'policyServer.url is "localhost:8000"; it must be a URL such as http://127.0.0.1:8000',
    );
  });

  it('is not repeated by what is wrong beside it', () => {
    const text = problems(`${base}analyst: [{ kind: llm, apiKeyEnv: ${key}, url: 'https://${key}@h/v1' }]\n`).join(
      '\n',
    );
    expect(text).toContain('analyst');
    expect(text).not.toContain(key);
  });

  it('is refused in the models of an environment, too', () => {
    const model = { url: 'http://h/v1', model: 'm' };
    expect(chatModelSchema.safeParse({ ...model, apiKeyEnv: 'MY_KEY' }).success).toBe(true);
    for (const wrong of [{ apiKeyEnv: key }, { url: `http://${key}@h/v1` }])
      expect(chatModelSchema.safeParse({ ...model, ...wrong }).success).toBe(false);
  });
});

it('docs/campaign-file.md is what `campaign schema --markdown` prints, and describes every field', () => {
  const kept = readFileSync(join(repository, 'docs/campaign-file.md'), 'utf8');
  expect(kept).toBe(campaignReference(campaignJsonSchema()));
  const undescribed = (node: JsonSchemaNode, path: string): string[] => [
    ...Object.entries(node.properties ?? {}).flatMap(([name, field]) => [
      ...(field.description ? [] : [`${path}.${name}`]),
      ...undescribed(field, `${path}.${name}`),
    ]),
    ...[...(node.oneOf ?? []), ...(node.anyOf ?? []), ...(node.items ? [node.items] : [])].flatMap((one) =>
      undescribed(one, path),
    ),
  ];
  expect(undescribed(campaignJsonSchema(), '')).toEqual([]);
});

it('campaigns/campaign.schema.json is what `campaign schema` prints', () => {
  const kept = readFileSync(join(repository, 'campaigns/campaign.schema.json'), 'utf8');
  expect(JSON.parse(kept)).toEqual(JSON.parse(JSON.stringify(campaignJsonSchema())));
});

test('what kinds say of parts is found once, where the file is read', () => {
  expect(load(base).parts).toEqual({});
  const analyst = "{ kind: llm, url: 'http://127.0.0.1:8000', model: m, timeoutSeconds: 900 }";
  expect(load(`${base}analyst: ${analyst}\n`).parts).toMatchObject({
    analystModel: { model: 'm', timeoutSeconds: 900 },
  });
});
