import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { z } from 'zod';
import {
  configDigests,
  loadCampaign,
  printSchema,
  termsDigest,
  type CampaignOverrides,
} from '../../../src/cli/campaign-file';
import { campaignFileSchema, campaignJsonSchema, type JsonSchemaNode } from '../../../src/cli/campaign-schema';
import { removed } from '../../../src/cli/removed-fields';
import { UserError } from '../../../src/cli/errors';
import { defineKind } from '../../../src/domain/kinds';
import type { Stage } from '../../../src/domain/work';
import { shopLines } from '../../support/campaign-run';
import { registry, shopPlugin } from '../../support/kinds';
import { campaignReference } from '../../docs/reference';
import { newFolder } from '../../support/temporary-folder';

const repository = resolve(__dirname, '../../..');
const named = 'name: mine\nbaseModel: { path: models/small }\n';
const base = named;
const tinker = (more = '') => `${base}trainer: { kind: tinker, url: 'http://gpu:8000'${more} }\n`;

/** Writes a campaign file. Parts that the text leaves out are those of the shop, in lines after it. */
function write(text: string): string {
  const file = join(newFolder(), 'mine.yaml');
  writeFileSync(file, text.trim() === '' ? text : `${text}\n${shopLines(text)}`);
  return file;
}
const load = (text: string, overrides: CampaignOverrides = {}) => loadCampaign({ file: write(text), overrides });
const digests = (text: string, until?: Stage) => {
  const file = write(text);
  return configDigests({ campaign: loadCampaign({ file }), file, until });
};

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
    expect(load(base)).toMatchObject({
      training: { learningRate: 1e-5 },
      calibration: { seeds: 100 },
      plugins: [shopPlugin],
      router: { kind: 'learned', tasks: 200, folds: 5 },
      arms: [{ kind: 'grpo_target' }],
    });
  });

  it('has its own values over those of the preset, field by field; an object of another kind replaces it whole', () => {
    const { training, router, policyServer } = load(
      `${base}preset: demo
training: { steps: 3, lora: { r: 4 } }
router: { tasks: 30, folds: 3 }
policyServer: { kind: vllm, url: 'http://gpu:8000' }
`,
    );
    expect(training).toMatchObject({ steps: 3, groupsPerStep: 4, learningRate: 0.002, lora: { r: 4, alpha: 16 } });
    expect(training.lora.targetModules).toContain('in_proj');
    // A part that is given without a kind has the default one.
    expect(router).toEqual({ kind: 'learned', tasks: 30, trials: 1, folds: 3 });
    expect(policyServer).toMatchObject({ kind: 'vllm', url: 'http://gpu:8000' });
    expect(policyServer).not.toHaveProperty('threads');
  });

  it.each([
    [', cwd: bridge', 'bridge'],
    ['', '.'],
  ])('resolves paths from its own folder: a target with "%s" works in %s', (cwd, folder) => {
    const file = write(`${named}target: { kind: process, command: [node, env.js]${cwd} }\n`);
    const { baseModel, target } = loadCampaign({ file });
    expect(baseModel.path).toBe(join(file, '../models/small'));
    expect(target).toMatchObject({ cwd: resolve(dirname(file), folder), processes: 1 });
  });

  it.each<[own: string, overrides: CampaignOverrides, name: string, seed: number, trainingSeed: number | undefined]>([
    ['', { seed: 7 }, 'mine-7', 7, undefined],
    ['', { seed: 1 }, 'mine', 1, undefined],
    ['', { seed: 7, name: 'other' }, 'other', 7, undefined],
    ['', { trainingSeed: 2 }, 'mine-s2', 1, 2],
    ['', { trainingSeed: 1 }, 'mine', 1, undefined],
    ['', { seed: 7, trainingSeed: 2 }, 'mine-7-s2', 7, 2],
    ['', { seed: 7, trainingSeed: 7 }, 'mine-7', 7, undefined],
    ['trainingSeed: 5', { trainingSeed: 5 }, 'mine', 1, 5],
    ['trainingSeed: 5', { trainingSeed: 1 }, 'mine-s1', 1, 1],
  ])('%s with %j gets in its name the seeds that are not its own: %s', (own, overrides, name, seed, trainingSeed) => {
    const campaign = load(`${base}${own}\n`, overrides);
    expect([campaign.name, campaign.seed, campaign.trainingSeed]).toEqual([name, seed, trainingSeed]);
  });

  it('has what kinds say of parts, found once', () => {
    expect(load(base).parts).toEqual({});
    const analyst = "{ kind: llm, url: 'http://127.0.0.1:8000', model: m, timeoutSeconds: 900 }";
    const model = { model: 'm', timeoutSeconds: 900 };
    expect(load(`${base}analyst: ${analyst}\n`).parts).toMatchObject({ analystModel: model });
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
    plugins: [],
    environments: [kind],
    analysts: [...registry.analysts, kind],
    synthesizers: [...registry.synthesizers, kind],
    routers: [...registry.routers, kind],
    arms: [{ ...kind, routable: false, planned: () => ({ training: 0, heldOut: 0 }) }],
  };
  const text = `name: mine
plugins: []
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
    const digest = async (one: string, kinds = readable) => {
      const file = write(one.replace('/f', 'f'));
      const campaign = loadCampaign({ file, registry: all });
      return (await configDigests({ campaign, file, registry: kinds })).evaluation;
    };
    const first = await digest(text);
    expect(await digest(text)).toBe(first);
    expect(await digest(text.replace('file: g', 'file: i'))).not.toBe(first);
    content = 'two';
    expect(await digest(text)).not.toBe(first);
    await expect(digest(text, all as unknown as typeof registry)).rejects.toThrow(UserError);
  });
});

describe('files that are shipped', () => {
  // That all of them can be started, given.test.ts tells.
  const onGpus = readdirSync(join(repository, 'campaigns')).filter((file) => /qwen3.*\.yaml$/.test(file));
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
    // Four capabilities, added up.
    expect(Number(flag('max-lora-rank'))).toBeGreaterThanOrEqual(4 * training.lora.r);
    // In a mixture of experts there are no others.
    if (/A\d+B/.test(policyServer.model!))
      expect(training.lora.targetModules).toEqual(['q_proj', 'k_proj', 'v_proj', 'o_proj']);
    expect(workers.stallSeconds).toBeGreaterThanOrEqual(workers.heartbeatSeconds);
    // A micro-batch holds no more, and a trainer tells of each.
    const tokens = Math.max(training.tokensPerForward, policyServer.contextTokens);
    expect(workers.stallSeconds).toBeGreaterThan(tokens / 100);
  });
});

describe('digests', () => {
  const vllm = (rest = '') => `${base}policyServer: { kind: vllm, url: 'http://127.0.0.1:8000'${rest} }\n`;
  const played = (options = '', host = 'h') =>
    `${named}target: { kind: process, command: [x], user: { url: 'http://${host}/v1', model: m${options} } }\n`;

  // Where, how fast and how patiently it is worked changes nothing; what may be spent, what waits for approval, and how many rollouts may break is
  // changed under the same name. The context that a server has, and whether it is ours, decides rollouts.
  it.each<[what: string, one: string, other: string, changes: 'nothing' | 'the terms' | 'the results']>([
    ['the place of the file', base, base, 'nothing'],
    ['a default', base, `${base}training: { steps: 20 }\n`, 'nothing'],
    ['threads', base, `${base}policyServer: { kind: embedded, threads: 3, maxBatch: 5 }\n`, 'nothing'],
    ['patience', base, `${base}rollouts: { concurrency: 3, maxAttempts: 7 }\n`, 'nothing'],
    ['workers', base, `${base}workers: { pool: night, gpuSlots: 3, heartbeatSeconds: 77 }\n`, 'nothing'],
    ['another vLLM', vllm(), vllm(', model: m, gpus: 2').replace('0.0.1:8000', '0.0.2:8'), 'nothing'],
    ['a price', played(), played(', price: { input: 1, output: 2 }'), 'nothing'],
    ['its pace', played(), played(', concurrency: 3, timeoutSeconds: 9'), 'nothing'],
    ['its host', played(), played('', 'elsewhere'), 'nothing'],
    ['the host of a Tinker server', tinker(), tinker().replace('gpu:8000', 'other:8001'), 'nothing'],
    ['its price', tinker(), tinker(', price: { forward: 0.1, train: 0.4 }'), 'nothing'],
    ['a budget', base, `${base}budget: { tokens: 1000 }\n`, 'the terms'],
    ['an approval', base, `${base}approval: { capabilities: true }\n`, 'the terms'],
    ['what may break', base, `${base}rollouts: { maxBrokenShare: 0.5 }\n`, 'the terms'],
    ['a value', base, `${base}training: { steps: 21 }\n`, 'the results'],
    ['rollouts', base, `${base}rollouts: { perTask: 3 }\n`, 'the results'],
    ['a temperature', played(), played(', temperature: 1'), 'the results'],
    ['a server', base, vllm(), 'the results'],
    ['a context', vllm(), vllm(', contextTokens: 4096'), 'the results'],
    ['what a Tinker server trains', tinker(), tinker(', model: m'), 'the results'],
  ])('of campaigns that differ in %s', async (_what, one, other, changes) => {
    expect((await digests(one)).evaluation === (await digests(other)).evaluation).toBe(changes !== 'the results');
    expect(termsDigest(load(one)) === termsDigest(load(other))).toBe(changes !== 'the terms');
  });

  const analyst = 'analyst: { kind: llm, url: http://127.0.0.1:8000, model: m }';
  const synthesizer = 'synthesizer: { kind: llm, url: http://127.0.0.1:8000, model: m }';
  it.each<[Stage, unchanged: string[], changed: string]>([
    [
      'rollouts',
      [analyst, 'selection: { votes: 7 }', 'validation: { seeds: 9 }', 'evaluation: { skip: 3 }'],
      'validation: { targetTasks: 9 }',
    ],
    ['selection', ['training: { steps: 21 }', synthesizer], 'selection: { votes: 7 }'],
    ['capabilities', ['router: { kind: learned, tasks: 9 }', 'evaluation: { trials: 3 }'], 'training: { steps: 21 }'],
    ['router', ['evaluation: { trials: 3 }'], 'router: { kind: learned, tasks: 9 }'],
  ])('of a campaign that ends after %s say what it has used and no more', async (stage, unchanged, changed) => {
    const first = await digests(base);
    for (const line of unchanged) {
      const edited = await digests(`${base}${line}\n`);
      expect(edited[stage]).toBe(first[stage]);
      expect(edited.evaluation).not.toBe(first.evaluation);
    }
    expect((await digests(`${base}${changed}\n`))[stage]).not.toBe(first[stage]);
  });

  it('are there where what only later stages read is not', async () => {
    const text = `${base}analyst: { kind: given, capabilities: none.json }\n`;
    await expect(digests(text)).rejects.toThrow('none.json');
    expect(await digests(text, 'rollouts')).toEqual({ rollouts: (await digests(base)).rollouts });
  });
});

const armKinds = registry.arms.map(({ kind }) => kind).join(', ');
const key = 'sk-proj-1234567890';

// Beside each mistake stands what is said of its line; what is missing is said of the first.
describe('mistakes in a campaign file are a line each, with place, value and fix:', () => {
  const kinds = registry.environments.flatMap(({ kind, internal }) => (internal ? [] : [kind])).join(', ');
  const hint = '; a plug-in can add kinds: plugins: [PACKAGE or PATH]';
  const aWhile = 'timeoutSeconds: 2147484';
  it.each<[what: string, file: string]>([
    [
      'in fields and kinds',
      `name: My Run  #! name is "My Run"; it must be lower-case letters, digits and dashes  #! baseModel is missing; write an object: The model that is trained
trainning: {}  #! unknown field 'trainning'; did you mean 'training'?
seed: -1  #! seed is -1; expected number to be >=0
target: { kind: proces }  #! target.kind is "proces"; it must be one of ${kinds}; did you mean 'process'?${hint}
training:
  steps: 2.5  #! training.steps is 2.5; expected int
  learningrate: 1  #! unknown field 'training.learningrate'; did you mean 'learningRate'?
selection: { rho: 1.5 }  #! selection.rho is 1.5; expected number to be <=1
calibration:
  meanReward: [0.2]  #! calibration.meanReward is [0.2]; expected array to have >=2 items
policyServer: { kind: vllm, url: 'http://gpu:6000' }  #! policyServer.url is "http://gpu:6000"; it must be a URL with another port: 6000 is of another protocol, and HTTP clients refuse it
router: { fold: 3 }  #! unknown field 'router.fold'; did you mean 'folds'?
analyst: given  #! analyst is "given"; it must be an object, such as { kind: given }
synthesizer: { kind: generator }  #! synthesizer.kind is "generator"; it must be one of given, llm, generators; did you mean 'generators'?${hint}
workers: { heartbeatSeconds: 5 }  #! workers.heartbeatSeconds is 5; expected number to be >=20
arms:
  - grpo_target  #! arms[0] is "grpo_target"; it must be an object, such as { kind: grpo_target }
  - { kind: gropo_target }  #! arms[1].kind is "gropo_target"; it must be one of ${armKinds}; did you mean 'grpo_target'?
  - { kind: grpo }  #! arms[2].kind is "grpo"; it must be one of ${armKinds}; did you mean 'grpo_target'?
  - { kind: grpo_target, name: base }  #! arms[3].name is "base"; it must be another name: the report has this one already
`,
    ],
    [
      'in options of kinds',
      `${named}target:
  kind: shop
  requests: 4  #! target.requests is 4; expected number to be <=3
  several: 1.2  #! target.several is 1.2; expected number to be <=1
  trainTasks: 1.5  #! target.trainTasks is 1.5; expected int
  testTasks: 0  #! target.testTasks is 0; expected number to be >=1
  testTask: 3  #! unknown field 'target.testTask'; did you mean 'testTasks'?
training: { steps: 1000000000 }  #! training.steps is 1000000000; expected number to be <=1000000
analyst: { kind: rules, capabilities: found.json }  #! unknown field 'analyst.capabilities'; allowed here: kind
synthesizer: { kind: given }  #! synthesizer.modules is missing; write a string: Folder of modules: CAPABILITY.js for each capability
`,
    ],
    [
      'in text where something else belongs, and a wait that no timer can hold',
      `${named}target:
  kind: process
  command: python3 x.py  #! target.command is "python3 x.py"; it must be a list, such as [python3, x.py]
  user: { url: 'http://h/v1', model: m, ${aWhile} }  #! target.user.timeoutSeconds is 2147484; expected number to be <=86400
training: { steps: many }  #! training.steps is "many"; expected number
policyServer: { kind: vllm, url: 'localhost:8000' }  #! policyServer.url is "localhost:8000"; it must be a URL such as http://127.0.0.1:8000
analyst: { kind: llm, url: 'http://h/v1', model: m, ${aWhile} }  #! analyst.timeoutSeconds is 2147484; expected number to be <=86400
`,
    ],
    [
      'in fields that do not go together',
      `${base}training:
  groupSize: 100000
  steps: 1000  #! training.steps is 1000; it must be at most 3 with groupsPerStep 32 and groupSize 100000: these are 3200000000 rollouts for an adapter, of at most 10000000
  delta: 1.2  #! training.delta is 1.2; it must be over 1 + training.clip (1.2), where clip already bounds the ratio; raise it
workers:
  heartbeatSeconds: 300
  stallSeconds: 60  #! workers.stallSeconds is 60; it must be at least workers.heartbeatSeconds (300); set it to that or more
arms: [{ kind: grpo_target }, { kind: grpo_target }]  #! arms is [{"kind":"grpo_target"},{"kind":"grpo_target"}]; it must be a list of arms of which each has a name of its own; grpo_target is there twice
`,
    ],
    [
      'in what does not go with a default',
      `${base}workers: { heartbeatSeconds: 3600, shardBase: true }  #! workers.shardBase is true; it must be false where workers.gpusPerTrainer is 0: there is nothing to divide; give a trainer 2 or more  #! workers.stallSeconds is missing; it must be at least workers.heartbeatSeconds (3600); set it to that or more`,
    ],
    [
      'in what a Tinker server can’t do',
      `${tinker().trim()}  #! trainer.price is missing; it must be given with budget.dollars (5), which counts by it; add price: { forward, train } in dollars for a million tokens
training:
  kl: 0.1  #! training.kl is 0.1; it must be 0 with trainer.kind tinker; set it to that
  temperature: 0.7  #! training.temperature is 0.7; it must be 1 with trainer.kind tinker; set it to that
  lora: { dropout: 0.1 }  #! training.lora.dropout is 0.1; it must be 0 with trainer.kind tinker; set it to that
budget: { dollars: 5 }
`,
    ],
    [
      'not in what others can',
      `${base}training: { kl: 0.1, temperature: 0.7, lora: { dropout: 0.1 } }
`,
    ],
    ['not in dollars that a price counts', `${tinker(', price: { forward: 0.1, train: 0.4 }')}budget: { dollars: 5 }`],
    [
      'in a target that only campaigns make',
      `${named}target: { kind: sandbox, module: {} }  #! target.kind is "sandbox"; it must be one of ${kinds}${hint}`,
    ],
    [
      'in a name that the home needs itself',
      base.replace(
        'mine',
        'artifacts  #! name is "artifacts"; the home keeps files of its own under that name, choose another',
      ),
    ],
    ['in a preset', `preset: dmeo  #! preset is "dmeo"; allowed: paper, attention-only, demo, small-model\n${base}`],
    ['an empty file', '  #! must be a map of fields (name, target, baseModel, ...), like campaigns/demo.yaml'],
    [
      'in what went, all of it at once',
      `${named}arms: [{ kind: grpo_target }]
target: { kind: agent, maxProcesses: 5 }  #! target.maxProcesses: removed in 0.3: limit the processes of the worker's container instead (docs/machines.md); delete the line
router: { kind: moe_gate }  #! router.kind moe_gate: removed in 0.3: vLLM cannot serve it; delete the line
`,
    ],
    [
      'a key where none belongs, which is not repeated',
      `${named}target: { kind: process, command: [x], user: { url: 'http://${key}@h/v1', model: m } }  #! target.user.url is (not shown); it must be a URL without user and password; apiKeyEnv names the variable with the key
policyServer: { kind: vllm, url: 'http://me:${key}@h' }  #! policyServer.url is (not shown); it must be a URL without user and password; POLICY_SERVER_API_KEY holds the key
analyst: [{ kind: llm, apiKeyEnv: ${key}, url: 'https://${key}@h/v1' }]  #! analyst is [{"kind":"llm","apiKeyEnv":"(not shown)","url":"(not shown)"}]; expected object
synthesizer:
  kind: llm
  model: m
  url: 'https://me:${key}@h/v1'  #! synthesizer.url is (not shown); it must be a URL without user and password; apiKeyEnv names the variable with the key
  apiKeyEnv: ${key}  #! synthesizer.apiKeyEnv is (not shown); it must be the name of an environment variable, such as EXAMPLE_API_KEY: the key itself belongs in it
`,
    ],
  ])('%s', (_what, annotated) => {
    const lines = annotated.split('\n').map((line) => line.split('  #! '));
    const said = lines.flatMap(([, ...texts], i) => texts.map((text) => `mine.yaml:${i + 1} ${text}`));
    expect(problems(lines.map(([text]) => text).join('\n')).toSorted()).toEqual(said.toSorted());
  });

  it('broken YAML names the line', () => {
    expect(problems(`${base}training: {steps: 3\n`)[0]).toMatch(/^mine\.yaml:\d+ is not YAML: /);
  });
});

describe('what campaign files could say before', () => {
  const fileWith = (path: string, value: unknown): object =>
    path.split('.').reduceRight<unknown>((inner, key) => {
      return key.endsWith('[]') ? { [key.slice(0, -2)]: [inner] } : { [key]: inner };
    }, value) as object;

  it.each(removed)(
    '$path $value is refused with its line, why it went and what to do',
    ({ path, value, version, why }) => {
      const file = fileWith(path, value ?? true);
      const name = path.replaceAll('[]', '[0]') + (value === undefined ? '' : ` ${value}`);
      const fix = value === undefined ? '; delete the line' : '';
      const [[field, inner]] = Object.entries(file) as [[string, unknown]];
      const others = base.replace(new RegExp(`^${field}:.*\n`, 'm'), '');
      expect(problems(`${others}${field}: ${JSON.stringify(inner)}\n`)).toEqual([
        `mine.yaml:${others.split('\n').length} ${name}: removed in ${version}: ${why}${fix}`,
      ]);
      expect(campaignFileSchema(registry).safeParse({ ...load(base), ...file }).success).toBe(false);
      for (const page of why.match(/docs\/\S+\.md/g) ?? []) expect(existsSync(join(repository, page))).toBe(true);
    },
  );
});

it('names the line of a text that is not valid Unicode', () => {
  const text = `${named}target:\n  kind: process\n  command: [node, "env \\ud83d.js"]\n`;
  expect(problems(text)).toEqual([expect.stringMatching(/^mine\.yaml:5 target\.command\[1\] holds half/)]);
  const file = write(base);
  writeFileSync(file, `${base}# caf\u00e9\n`, 'latin1');
  expect(() => loadCampaign({ file })).toThrow(/not UTF-8/);
});

it('docs/campaign-file.md is what `make reference` writes, and describes every field', () => {
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
  expect(JSON.parse(kept)).toEqual(JSON.parse(printSchema()));
});
