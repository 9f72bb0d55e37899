/**
 * The model card of an exported folder, in the hub's layout. Every figure has its interval, its n and the id that `campaign show` accepts. Texts of models
 * and foreign names are escaped, so that they can't add markup to a public card.
 */
import { escapeMarkdown, plainLine } from '../domain/plain-text';
import { policyNames } from '../domain/policies';
import { rankFor } from '../policy/server';
import { spreadText, valueText } from '../report/format';
import type { Report } from '../report/model';
import type { ExportedRouter } from './folder';

export interface CardFacts {
  report: Report;
  router: ExportedRouter;
  license: string;
  /** The largest rank of an adapter; 0 without adapters. */
  rank: number;
}

/** Formats a name as code: within it nothing else has a meaning. */
const code = (text: string): string => `\`${plainLine(text).replaceAll('`', "'")}\``;

export function folderCard({ report, router, license, rank }: CardFacts): string {
  const { campaign, recommendation, doubts, capabilities = [], arms = [] } = report;
  const target = escapeMarkdown(campaign.target.name);
  const names = [policyNames.routed, ...[...router.options, ...router.baselines].map(({ name }) => name)];
  const figures = names.flatMap((name) => {
    const rate = arms.find((arm) => arm.name === name)?.successRate;
    return rate ? [`| ${name} | ${valueText(rate)} | ${spreadText(rate) ?? ''} | ${rate.n} | \`${rate.id}\` |`] : [];
  });
  // A base model that the hub does not have lies in a folder of this machine, which readers of the card cannot reach.
  const isOnHub = /^[\w.-]+\/[\w.-]+$/.test(router.base.name);
  const context = /, (\d+) tokens$/.exec(router.base.id)?.[1];
  const lora = rank === 0 ? '' : ` \\\n  --enable-lora --max-lora-rank ${rankFor(rank) ?? rank}`;
  return [
    // Fields that the hub reads: https://huggingface.co/docs/hub/model-cards.
    '---',
    `license: ${license}`,
    ...(isOnHub ? [`base_model: ${router.base.name}`] : []),
    'library_name: peft',
    'pipeline_tag: text-generation',
    'tags: [lora, reinforcement-learning, agent]',
    '---',
    '',
    `# ${escapeMarkdown(campaign.name)}`,
    '',
    `Adapters of ${code(router.base.name)} and a router between them, made by a campaign on ${target} (TRACE, arXiv 2604.05336). \`adapters/\` and \`sums/\` hold PEFT folders, \`environments/\` and \`verifiers/\` what they were trained on, \`report.html\` all figures.`,
    '',
    ...[...(recommendation?.sentences ?? []), ...doubts.slice(0, 1)].map(({ text }) => `${escapeMarkdown(text)}\n`),
    '## Adapters',
    '',
    ...capabilities.map(
      ({ name, definition, statement }) =>
        `- ${escapeMarkdown(`${name}: ${definition} ${statement?.text ?? 'It has no adapter.'}`)}`,
    ),
    '',
    '## Success on test tasks',
    '',
    '| policy | success rate | interval | n | lineage |',
    '| --- | --- | --- | --- | --- |',
    ...figures,
    '',
    "`campaign show ID` in the campaign's home leads from an id to the rollouts behind the figure.",
    '',
    '## Serve it',
    '',
    `With vLLM and the gateway of \`campaign\`, which routes each conversation (model \`trace\`)${isOnHub ? '' : `; \`../base\` is the folder of ${code(router.base.name)}`}:`,
    '',
    '```',
    `VLLM_ALLOW_RUNTIME_LORA_UPDATING=True vllm serve ${isOnHub ? router.base.name : '../base'} --generation-config vllm${context ? ` --max-model-len ${context}` : ''}${lora}`,
    `CAMPAIGN_BASE_ID='${router.base.id.replace(/, .*$/, '')}' campaign serve . --policy-server http://127.0.0.1:8000`,
    '```',
    '',
    "Where agents have tools, vLLM also needs `--enable-auto-tool-choice --tool-call-parser PARSER` of the base model's family.",
    '',
    '## Limits',
    '',
    `- Measured on ${escapeMarkdown(`${campaign.target.name} ${campaign.target.version}`)} alone, from one training run: another run may differ by several points.`,
    "- No task of the target's test split was trained on. On other tasks the adapters may do worse than the base model.",
    "- The base model's licence holds as well.",
    '',
  ].join('\n');
}
