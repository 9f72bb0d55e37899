import { readFileSync, writeFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import {
  configDigest,
  loadCampaign,
  printSchema,
  termsDigest,
  travelling,
  type CampaignOverrides,
} from '../../../src/cli/campaign-file';
import { campaignJsonSchema, type JsonSchemaNode } from '../../../src/cli/campaign-schema';
import { InputError, type Problem } from '../../../src/cli/errors';
import { homeAt } from '../../../src/cli/project';
import { shopLines } from '../../support/campaign-run';
import { shopPlugin } from '../../support/kinds';
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
const home = homeAt(newFolder());
const digestOf = async (text: string) =>
  configDigest(await travelling({ campaign: load(text), home, base: 'small@0123456789ab' }));

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
    ['', { seed: 1 }, 'mine', 1, undefined],
    ['', { seed: 7, name: 'other' }, 'other', 7, undefined],
    ['', { trainingSeed: 1 }, 'mine', 1, undefined],
    ['', { seed: 7, trainingSeed: 2 }, 'mine-7-s2', 7, 2],
    ['trainingSeed: 5', { trainingSeed: 5 }, 'mine', 1, 5],
    ['trainingSeed: 5', { trainingSeed: 1 }, 'mine-s1', 1, 1],
  ])('%s with %j gets in its name the seeds that are not its own: %s', (own, overrides, name, seed, trainingSeed) => {
    expect(load(`${base}${own}\n`, overrides)).toMatchObject({ name, seed, ...(trainingSeed && { trainingSeed }) });
  });
});

describe('digests', () => {
  const vllm = (rest = '') => `${base}policyServer: { kind: vllm, url: 'http://127.0.0.1:8000'${rest} }\n`;
  const played = (options = '', host = 'h') =>
    `${named}target: { kind: process, command: [x], cwd: /, user: { url: 'http://${host}/v1', model: m${options} } }\n`;

  // Where, how fast and how patiently it is worked changes nothing; what may be spent, what waits for approval, and how many rollouts may break is
  // changed under the same name. The context that a server has, and whether it is ours, decides rollouts.
  it.each<[what: string, one: string, other: string, changes: 'nothing' | 'the terms' | 'the results']>([
    ['a default', base, `${base}training: { steps: 20 }\n`, 'nothing'],
    ['threads', base, `${base}policyServer: { kind: embedded, threads: 3, maxBatch: 5 }\n`, 'nothing'],
    ['workers', base, `${base}workers: { pool: night, gpuSlots: 3, heartbeatSeconds: 77 }\n`, 'nothing'],
    ['another vLLM', vllm(), vllm(', model: m, gpus: 2').replace('0.0.1:8000', '0.0.2:8'), 'nothing'],
    ['a price', played(), played(', price: { input: 1, output: 2 }'), 'nothing'],
    ['the host of a Tinker server', tinker(), tinker().replace('gpu:8000', 'other:8001'), 'nothing'],
    ['a budget', base, `${base}budget: { tokens: 1000 }\n`, 'the terms'],
    ['an approval', base, `${base}approval: { capabilities: true }\n`, 'the terms'],
    ['a value', base, `${base}training: { steps: 21 }\n`, 'the results'],
    ['a temperature', played(), played(', temperature: 1'), 'the results'],
    ['a server', base, vllm(), 'the results'],
    ['what a Tinker server trains', tinker(), tinker(', model: m'), 'the results'],
  ])('of campaigns that differ in %s', async (_what, one, other, changes) => {
    expect((await digestOf(one)) === (await digestOf(other))).toBe(changes !== 'the results');
    expect(termsDigest(load(one)) === termsDigest(load(other))).toBe(changes !== 'the terms');
  });
});

const key = 'sk-proj-1234567890';

// Beside each mistake stands its field; a missing field is reported for the first line.
describe('mistakes in a campaign file are a line each, with place and field:', () => {
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
  requests: 3  #! target.requests
  testTask: 3  #! target.testTask
training: { steps: many }  #! training.steps
policyServer: { kind: vllm, url: 'localhost:8000' }  #! policyServer.url
analyst: { kind: rules, capabilities: found.json }  #! analyst.capabilities
synthesizer: { kind: given }  #! synthesizer.modules
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
    ['in a base model of two places', 'name: mine\nbaseModel: { path: a, hub: b/c }  #! baseModel'],
    [
      'in a base model by name',
      'name: mine\nbaseModel: { hub: tiny, revision: ../x }  #! baseModel.hub  #! baseModel.revision',
    ],
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
    const where = expect.stringMatching(/^mine\.yaml:\d+$/) as string;
    expect(problems(`${base}training: {steps: 3\n`)).toMatchObject([{ code: 'unreadable_file', where }]);
  });
});

it('refuses a file that is not UTF-8', () => {
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
