/**
 * Model cards in the hub's layout. Every figure stands with its interval, its n and the id that `campaign lineage` takes. Texts of models and names of
 * others are escaped: a public card shows them and obeys nothing in them.
 */
import type { Figure } from '../domain/artifacts';
import { escapeMarkdown, plainLine } from '../domain/plain-text';
import { policyNames } from '../domain/policies';
import { rankFor } from '../policy/server';
import { CHOSE } from '../report/adapters';
import { spreadText, valueText } from '../report/format';
import type { Arm, Report } from '../report/model';
import type { ExportedRouter } from './folder';

export interface CardFacts {
  report: Report;
  router: ExportedRouter;
  /** Capabilities whose environment is in the folder. */
  environments: ReadonlySet<string>;
  /** As the hub names it. */
  license: string;
  /** Of the largest adapter or sum. */
  rank: number | undefined;
}

const isOnHub = ({ base }: ExportedRouter): boolean => /^[\w.-]+\/[\w.-]+$/.test(base.name);

/** Its fields are read by the hub: https://huggingface.co/docs/hub/model-cards. */
function frontMatter({ router, license }: CardFacts, library: string): string {
  return [
    '---',
    `license: ${license}`,
    ...(isOnHub(router) ? [`base_model: ${router.base.name}`] : []),
    `library_name: ${library}`,
    'pipeline_tag: text-generation',
    'tags: [lora, reinforcement-learning, agent]',
    '---',
    '',
  ].join('\n');
}

/** A name as code: within it nothing else has a meaning. */
const code = (text: string): string => `\`${plainLine(text).replaceAll('`', "'")}\``;

const row = (label: string, figure: Figure | undefined): string[] =>
  figure === undefined
    ? []
    : [`| ${label} | ${valueText(figure)} | ${spreadText(figure) ?? ''} | ${figure.n} | \`${figure.id}\` |`];

const table = (rows: readonly string[]): string[] =>
  rows.length === 0
    ? ['Nothing was measured.']
    : ['| figure | value | interval | n | lineage |', '| --- | --- | --- | --- | --- |', ...rows];

const rate = ({ arms = [] }: Report, name: string) => arms.find((arm) => arm.name === name);

/** Of an adapter, or of a sum of adapters. */
export function adapterCard(name: string, facts: CardFacts): string {
  const { report, router, environments } = facts;
  const { campaign, capabilities = [] } = report;
  const target = escapeMarkdown(campaign.target.name);
  const parts = name.split('+');
  const arm = rate(report, name);
  const own = capabilities.filter((one) => [...parts, ...(arm?.builtOn ?? [])].includes(one.name));
  const single = capabilities.find((one) => one.name === name);
  const baseline = arm?.role === 'baseline' ? arm : undefined;
  const spent = (training: Arm['training']) =>
    training ? `, ${training.steps} steps, ${valueText(training.rollouts)} rollouts` : '';
  const data = own.map(({ name: of, training }) => {
    const from = environments.has(of)
      ? `the synthesized environment \`environments/${of}.js\``
      : 'the environments of its parts';
    return `- ${of}: GRPO on ${from}${baseline ? '' : spent(training)}.`;
  });
  if (baseline?.conversations !== undefined)
    data.push(`- ${baseline.conversations} conversations that somebody brought.`);
  if (baseline)
    data.push(`- As the baseline \`${baseline.kind}\` does, which the report compares${spent(baseline.training)}.`);
  const rows = [
    ...row(`success on ${target}'s test tasks`, arm?.successRate),
    ...row(`the same, base model`, rate(report, policyNames.base)?.successRate),
    ...row('difference to the base model, paired over tasks', arm?.differenceToBase),
    ...row('its own environment, held-out seeds, before', single?.validation?.synthesized.before),
    ...row(
      `its own environment, held-out seeds, after${single?.validation?.chose ? `, ${CHOSE}` : ''}`,
      single?.validation?.synthesized.after,
    ),
    ...row('difference on all tasks of the target that it was tried on', single?.onTarget?.all),
  ];
  return [
    frontMatter(facts, 'peft'),
    `# ${escapeMarkdown(name)}`,
    '',
    `A LoRA ${parts.length > 1 ? `that is the sum of ${parts.length} adapters` : 'adapter'} of ${code(router.base.name)}, made by the campaign ${code(campaign.name)} (TRACE, arXiv 2604.05336).`,
    '',
    '## What it was trained for',
    '',
    ...(own.length > 0 ? own.map((one) => `- ${one.name}: ${escapeMarkdown(one.definition)}`) : [`- ${target}`]),
    '',
    '## Data',
    '',
    ...data,
    `- No task of ${target}'s test split was trained on.`,
    '',
    '## Figures',
    '',
    ...table(rows),
    ...(single?.statement ? ['', escapeMarkdown(single.statement.text)] : []),
    '',
    '## Lineage',
    '',
    `Base model ${code(router.base.id)}, campaign ${code(campaign.name)} with configuration \`${campaign.configSha256}\`${own.flatMap(({ adapter }) => (adapter ? [`, adapter \`${adapter.sha256}\``] : [])).join('')}. \`campaign lineage ID\` in the campaign's home leads from an id above to its rollouts.`,
    '',
    ...ending(facts),
  ].join('\n');
}

const ending = ({ report: { campaign }, license }: CardFacts): string[] => [
  '## Limits',
  '',
  `- Measured on ${escapeMarkdown(`${campaign.target.name} ${campaign.target.version}`)} alone, from one training run: another one may come out several points otherwise.`,
  '- The tool calls and texts that it knows are those of its environments; on other tasks it may do worse than the base model.',
  '',
  '## Licence',
  '',
  `${license === 'unknown' ? 'None is stated: ask who published this.' : `\`${license}\`.`} The base model's licence holds as well.`,
  '',
];

export function folderCard(facts: CardFacts): string {
  const { report, router, environments, rank } = facts;
  const { campaign, verdict } = report;
  const target = escapeMarkdown(campaign.target.name);
  const all = [...router.options, ...router.baselines];
  const names = [policyNames.routed, ...all.map(({ name }) => name)];
  const context = /, (\d+) tokens$/.exec(router.base.id)?.[1];
  // Of one that the hub does not have, as little is known as where its folder lies.
  const served = isOnHub(router) ? router.base.name : '../base';
  const lora = rank === undefined ? '' : ` \\\n  --enable-lora --max-lora-rank ${rankFor(rank) ?? rank}`;
  const files: [string, string][] = [
    ['router.json', 'which policy plays a conversation'],
    ['adapters/', 'one PEFT folder each, with its card'],
    ...(all.some(({ merged }) => merged)
      ? [['sums/', 'sums of adapters, merged: PEFT folders too'] as [string, string]]
      : []),
    ...(all.some(({ prompt }) => prompt)
      ? [['prompts/', 'prompts of policies that have one'] as [string, string]]
      : []),
    ...(environments.size > 0
      ? ([
          ['environments/', 'what the adapters were trained on: `campaign env check FILE` tries one'],
          ['verifiers/', 'the same as packages of verifiers: others can train on them'],
        ] satisfies [string, string][])
      : []),
    ['report.html, report.json', 'all figures with what they rest on'],
  ];
  return [
    frontMatter(facts, 'peft'),
    `# ${escapeMarkdown(campaign.name)}`,
    '',
    `Adapters of ${code(router.base.name)} and a router between them, made by a campaign on ${target} (TRACE, arXiv 2604.05336).`,
    '',
    ...verdict.slice(0, 2).map(({ text }) => `${escapeMarkdown(text)}\n`),
    '## Figures',
    '',
    `Success on ${target}'s test tasks.`,
    '',
    ...table(names.flatMap((name) => row(name, rate(report, name)?.successRate))),
    '',
    '## Files',
    '',
    '| file | holds |',
    '| --- | --- |',
    ...files.map(([file, holds]) => `| ${file} | ${holds} |`),
    '',
    '## Serve it',
    '',
    `\`campaign\` is the program that wrote this folder${isOnHub(router) ? '' : `, and \`../base\` the folder of ${code(router.base.name)}`}. With vLLM and the gateway, which routes each conversation (model \`trace\`):`,
    '',
    '```',
    `VLLM_ALLOW_RUNTIME_LORA_UPDATING=True vllm serve ${served} --generation-config vllm${context ? ` --max-model-len ${context}` : ''}${lora}`,
    `CAMPAIGN_BASE_ID='${router.base.id.replace(/, .*$/, '')}' campaign gateway . --policy-server http://127.0.0.1:8000`,
    '```',
    '',
    "Where agents have tools, vLLM also needs `--enable-auto-tool-choice --tool-call-parser PARSER` of the base model's family.",
    '',
    'Without a GPU, for a small base model:',
    '',
    '```',
    ...(isOnHub(router) ? [`hf download ${router.base.name} --local-dir ../base`] : []),
    'campaign gateway . --model ../base',
    '```',
    ...(rank === undefined
      ? []
      : [
          '',
          'One adapter alone, without the router:',
          '',
          '```',
          `vllm serve ${served}${lora} \\\n  --lora-modules ${loraModules(router).join(' ')}`,
          '```',
        ]),
    '',
    '`hf upload NAME .` publishes the folder as it is.',
    '',
    ...ending(facts),
  ].join('\n');
}

const loraModules = ({ options, baselines }: ExportedRouter): string[] =>
  [...options, ...baselines].flatMap(({ name, adapters, merged }) => {
    const folder = merged ?? (adapters.length === 1 ? adapters[0]!.folder : undefined);
    return folder === undefined ? [] : [`${name}=${folder}`];
  });
