/**
 * Model cards in the hub's layout. Every figure stands with its interval, its n and the id that `campaign show` takes. Texts of models and names of
 * others are escaped: a public card shows them and obeys nothing in them.
 */
import type { Figure } from '../domain/artifacts';
import { escapeMarkdown, plainLine } from '../domain/plain-text';
import { policyNames } from '../domain/policies';
import { rankFor } from '../policy/server';
import { CHOSE } from '../report/adapters';
import { spreadText, valueText } from '../report/format';
import type { Report } from '../report/model';
import type { ExportedRouter } from './folder';

export interface CardFacts {
  report: Report;
  router: ExportedRouter;
  license: string;
  rank: number | undefined;
}

const isOnHub = ({ base }: ExportedRouter): boolean => /^[\w.-]+\/[\w.-]+$/.test(base.name);

/** Fields that the hub reads: https://huggingface.co/docs/hub/model-cards. */
const frontMatter = ({ router, license }: CardFacts): string[] => [
  '---',
  `license: ${license}`,
  ...(isOnHub(router) ? [`base_model: ${router.base.name}`] : []),
  'library_name: peft',
  'pipeline_tag: text-generation',
  'tags: [lora, reinforcement-learning, agent]',
  '---',
  '',
];

/** Formats a name as code: within it nothing else has a meaning. */
const code = (text: string): string => `\`${plainLine(text).replaceAll('`', "'")}\``;

const row = (label: string, figure: Figure | undefined): string[] =>
  figure === undefined
    ? []
    : [`| ${label} | ${valueText(figure)} | ${spreadText(figure) ?? ''} | ${figure.n} | \`${figure.id}\` |`];

const figures = (rows: readonly string[]): string[] => [
  '## Figures',
  '',
  ...(rows.length === 0
    ? ['Nothing was measured.']
    : ['| figure | value | interval | n | lineage |', '| --- | --- | --- | --- | --- |', ...rows]),
  '',
  "`campaign show ID` in the campaign's home leads from an id to the rollouts behind the figure.",
  '',
];

const limits = ({ report: { campaign } }: CardFacts): string[] => [
  '## Limits',
  '',
  `- Measured on ${escapeMarkdown(`${campaign.target.name} ${campaign.target.version}`)} alone, from one training run: another run may differ by several points.`,
  '- It knows the tool calls and texts of its environments; on other tasks it may do worse than the base model.',
  "- The base model's licence holds as well.",
  '',
];

const armOf = ({ arms = [] }: Report, name: string) => arms.find((arm) => arm.name === name);

export function adapterCard(name: string, facts: CardFacts): string {
  const { report, router } = facts;
  const { campaign, capabilities = [] } = report;
  const target = escapeMarkdown(campaign.target.name);
  const arm = armOf(report, name);
  const trainedFor = [...name.split('+'), ...(arm?.builtOn ?? [])];
  const own = capabilities.filter((one) => trainedFor.includes(one.name));
  const single = capabilities.find((one) => one.name === name);
  const rows = [
    ...row(`success on ${target}'s test tasks`, arm?.successRate),
    ...row(`the same, base model`, armOf(report, policyNames.base)?.successRate),
    ...row('difference to the base model, paired over tasks', arm?.differenceToBase),
    ...row('its own environment, held-out seeds, before', single?.validation?.synthesized.before),
    ...row(
      `its own environment, held-out seeds, after${single?.validation?.chose ? `, ${CHOSE}` : ''}`,
      single?.validation?.synthesized.after,
    ),
    ...row('difference on all tasks of the target that it was tried on', single?.onTarget?.all),
  ];
  return [
    ...frontMatter(facts),
    `# ${escapeMarkdown(name)}`,
    '',
    `A LoRA of ${code(router.base.name)}, made by the campaign ${code(campaign.name)} (TRACE, arXiv 2604.05336).`,
    '',
    '## Training',
    '',
    ...own.map(
      ({ name: of, definition }) => `- ${of}: ${escapeMarkdown(definition)} Trained on \`environments/${of}.js\`.`,
    ),
    ...(own.length === 0 ? [`- Trained on ${target}.`] : []),
    `- No task of ${target}'s test split was trained on.`,
    '',
    ...figures(rows),
    ...(single?.statement ? [escapeMarkdown(single.statement.text), ''] : []),
    ...limits(facts),
  ].join('\n');
}

export function folderCard(facts: CardFacts): string {
  const { report, router, rank } = facts;
  const { campaign, verdict } = report;
  const target = escapeMarkdown(campaign.target.name);
  const names = [policyNames.routed, ...[...router.options, ...router.baselines].map(({ name }) => name)];
  const context = /, (\d+) tokens$/.exec(router.base.id)?.[1];
  // A base model that the hub does not have lies in a folder of this machine, which readers of the card cannot reach.
  const served = isOnHub(router) ? router.base.name : '../base';
  const lora = rank === undefined ? '' : ` \\\n  --enable-lora --max-lora-rank ${rankFor(rank) ?? rank}`;
  return [
    ...frontMatter(facts),
    `# ${escapeMarkdown(campaign.name)}`,
    '',
    `Adapters of ${code(router.base.name)} and a router between them, made by a campaign on ${target} (TRACE, arXiv 2604.05336). \`adapters/\` and \`sums/\` hold PEFT folders with their cards, \`environments/\` and \`verifiers/\` what they were trained on, \`report.html\` all figures.`,
    '',
    ...verdict.slice(0, 2).map(({ text }) => `${escapeMarkdown(text)}\n`),
    ...figures(names.flatMap((name) => row(`${name}, success on test tasks`, armOf(report, name)?.successRate))),
    '## Serve it',
    '',
    `With vLLM and the gateway of \`campaign\`, which routes each conversation (model \`trace\`)${isOnHub(router) ? '' : `; \`../base\` is the folder of ${code(router.base.name)}`}:`,
    '',
    '```',
    `VLLM_ALLOW_RUNTIME_LORA_UPDATING=True vllm serve ${served} --generation-config vllm${context ? ` --max-model-len ${context}` : ''}${lora}`,
    `CAMPAIGN_BASE_ID='${router.base.id.replace(/, .*$/, '')}' campaign serve . --policy-server http://127.0.0.1:8000`,
    '```',
    '',
    "Where agents have tools, vLLM also needs `--enable-auto-tool-choice --tool-call-parser PARSER` of the base model's family.",
    '',
    ...limits(facts),
  ].join('\n');
}
