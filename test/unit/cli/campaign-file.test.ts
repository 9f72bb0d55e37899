import { existsSync, readFileSync, writeFileSync } from 'node:fs';
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
import { InputError, type Problem, UserError } from '../../../src/cli/errors';
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

function problems(text: string): Problem[] {
  const file = write(text);
  try {
    loadCampaign({ file });
  } catch (error) {
    if (!(error instanceof InputError)) throw error;
    return error.problems.map((problem) => ({ ...problem, where: problem.where?.replace(file, 'mine.yaml') ?? '' }));
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
    arms: [{ ...kind, planned: () => ({ training: 0, heldOut: 0 }) }],
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

const key = 'sk-proj-1234567890';

// Beside each mistake stands its field; a missing field is reported for the first line.
describe('mistakes in a campaign file are a line each, with place and field:', () => {
  const aWhile = 'timeoutSeconds: 2147484';
  it.each<[what: string, file: string]>([
    [
      'in fields and kinds',
      `name: My Run  #! name  #! baseModel
trainning: {}  #! trainning
seed: -1  #! seed
target: { kind: proces }  #! target.kind
training:
  steps: 2.5  #! training.steps
  learningrate: 1  #! training.learningrate
selection: { rho: 1.5 }  #! selection.rho
calibration:
  meanReward: [0.2]  #! calibration.meanReward
policyServer: { kind: vllm, url: 'ftp://gpu:6000' }  #! policyServer.url
router: { fold: 3 }  #! router.fold
analyst: given  #! analyst
synthesizer: { kind: generator }  #! synthesizer.kind
workers: { heartbeatSeconds: 4 }  #! workers.heartbeatSeconds
arms:
  - grpo_target  #! arms[0]
  - { kind: gropo_target }  #! arms[1].kind
  - { kind: grpo }  #! arms[2].kind
  - { kind: grpo_target, name: base }  #! arms[3].name
`,
    ],
    [
      'in options of kinds',
      `${named}target:
  kind: shop
  requests: 4  #! target.requests
  several: 1.2  #! target.several
  trainTasks: 1.5  #! target.trainTasks
  testTasks: 0  #! target.testTasks
  testTask: 3  #! target.testTask
training: { steps: 1000000000 }  #! training.steps
analyst: { kind: rules, capabilities: found.json }  #! analyst.capabilities
synthesizer: { kind: given }  #! synthesizer.modules
`,
    ],
    [
      'in text where something else belongs, and a wait that no timer can hold',
      `${named}target:
  kind: process
  command: python3 x.py  #! target.command
  user: { url: 'http://h/v1', model: m, ${aWhile} }  #! target.user.timeoutSeconds
training: { steps: many }  #! training.steps
policyServer: { kind: vllm, url: 'localhost:8000' }  #! policyServer.url
analyst: { kind: llm, url: 'http://h/v1', model: m, ${aWhile} }  #! analyst.timeoutSeconds
`,
    ],
    [
      'in fields that do not go together',
      `${base}training:
  groupSize: 100000
  steps: 1000  #! training.steps
  delta: 1.2  #! training.delta
arms: [{ kind: grpo_target }, { kind: grpo_target }]  #! arms
`,
    ],
    ['in what does not go with a default', `${base}workers: { shardBase: true }  #! workers.shardBase`],
    [
      'in what a Tinker server can’t do',
      `${tinker().trim()}  #! trainer.price
training:
  kl: 0.1  #! training.kl
  temperature: 0.7  #! training.temperature
  lora: { dropout: 0.1 }  #! training.lora.dropout
budget: { dollars: 5 }
`,
    ],
    [
      'not in what others can',
      `${base}training: { kl: 0.1, temperature: 0.7, lora: { dropout: 0.1 } }
`,
    ],
    ['not in dollars that a price counts', `${tinker(', price: { forward: 0.1, train: 0.4 }')}budget: { dollars: 5 }`],
    ['in a target that only campaigns make', `${named}target: { kind: sandbox, module: {} }  #! target.kind`],
    ['in a name that the home needs itself', base.replace('mine', 'artifacts  #! name')],
    ['in a preset', `preset: dmeo  #! preset\n${base}`],
    ['an empty file', '  #! campaign file'],
    [
      'in what went, all of it at once',
      `${named}arms: [{ kind: grpo_target }]
target: { kind: agent, maxProcesses: 5 }  #! target.maxProcesses
router: { kind: moe_gate }  #! router.kind
`,
    ],
    [
      'a key where none belongs, which is not repeated',
      `${named}target: { kind: process, command: [x], user: { url: 'http://${key}@h/v1', model: m } }  #! target.user.url
policyServer: { kind: vllm, url: 'http://me:${key}@h' }  #! policyServer.url
analyst: [{ kind: llm, apiKeyEnv: ${key}, url: 'https://${key}@h/v1' }]  #! analyst
synthesizer:
  kind: llm
  model: m
  url: 'https://me:${key}@h/v1'  #! synthesizer.url
  apiKeyEnv: ${key}  #! synthesizer.apiKeyEnv
`,
    ],
  ])('%s', (_what, annotated) => {
    const lines = annotated.split('\n').map((line) => line.split('  #! '));
    const expected = lines.flatMap(([, ...fields], i) => fields.map((field) => `mine.yaml:${i + 1} ${field}`));
    const found = problems(lines.map(([text]) => text).join('\n'));
    expect(found.map(({ where, field }) => `${where} ${field}`).toSorted()).toEqual(expected.toSorted());
    expect(JSON.stringify(found)).not.toContain(key);
  });

  it('broken YAML names the line', () => {
    const [problem] = problems(`${base}training: {steps: 3\n`);
    expect(problem).toMatchObject({
      code: 'unreadable_file',
      where: expect.stringMatching(/^mine\.yaml:\d+$/) as string,
    });
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
      const name = path.replaceAll('[]', '[0]');
      const [[field, inner]] = Object.entries(file) as [[string, unknown]];
      const others = base.replace(new RegExp(`^${field}:.*\n`, 'm'), '');
      expect(problems(`${others}${field}: ${JSON.stringify(inner)}\n`)).toMatchObject([
        {
          ...{ code: 'removed_field', field: name, reason: expect.stringContaining(version) as string },
          ...{ where: `mine.yaml:${others.split('\n').length}`, fix: expect.stringContaining(why) as string },
        },
      ]);
      expect(campaignFileSchema(registry).safeParse({ ...load(base), ...file }).success).toBe(false);
      for (const page of why.match(/docs\/\S+\.md/g) ?? []) expect(existsSync(join(repository, page))).toBe(true);
    },
  );
});

it('names the line of a text that is not valid Unicode', () => {
  const text = `${named}target:\n  kind: process\n  command: [node, "env \\ud83d.js"]\n`;
  expect(problems(text)).toMatchObject([{ where: 'mine.yaml:5', field: 'target.command[1]' }]);
  const file = write(base);
  writeFileSync(file, `${base}# caf\u00e9\n`, 'latin1');
  expect(() => loadCampaign({ file })).toThrow(InputError);
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
