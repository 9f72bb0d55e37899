/** `campaign plan`: what a campaign will make and spend, before anything is spent. Invariant: reads only; starts no service. */
import type { Command } from 'commander';
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { basename, join } from 'node:path';
import type { Campaign } from '../../domain/campaign';
import { publishedRun } from '../../domain/presets';
import type { Report } from '../../report/model';
import { messageOf, UserError } from '../errors';
import { allOptions, examples, homeOf, wholeNumber } from '../options';
import type { RatesFile } from '../plan/rates';

interface PlanOptions {
  capabilities?: number;
  rates?: string;
}

export function planCommand(program: Command): void {
  program
    .command('plan <file>')
    .description(
      'estimate rollouts, tokens, GPU-hours and wall time of a campaign, from measured rates where there are any',
    )
    .option(
      '--capabilities <n>',
      `capabilities that are selected (default: what the analyst is given outright, else ${publishedRun.capabilities}, as published)`,
      wholeNumber(0, 100),
    )
    .option('--rates <file>', 'rates for what no report of this home has measured (docs/plan.md)')
    .option('--json', 'print JSON')
    .addHelpText('after', examples(['campaign plan campaigns/mine.yaml --capabilities 6']))
    .action(async (path: string, _options: unknown, command: Command) => {
      const options = allOptions<PlanOptions>(command);
      const home = homeOf(options);
      const { loadCampaign } = await import('../campaign-file.js');
      const { checkParts } = await import('../checks/target.js');
      const { wrapText } = await import('../../terminal.js');
      const { plannedDisk } = await import('../plan/estimate.js');
      const { estimate } = await import('../plan/estimate.js');
      const { plannedQuestions } = await import('../plan/language-models.js');
      const { ratesOf } = await import('../plan/rates.js');
      const { targetTasks } = await import('../open-target.js');
      const { planText } = await import('../plan/text.js');
      const { trajectoryTokens } = await import('../plan/rates.js');
      const { allReports } = await import('../reports.js');
      const { registry } = await import('../../registry.js');
      const campaign = loadCampaign({ file: path });
      const file = options.rates && { path: options.rates, rates: await readRates(options.rates) };
      const target = await targetTasks(campaign, home);
      const parts = await checkParts({ campaign, description: target.description, registry });
      const reports = allReports(home.root).filter((report) => isLike(report, campaign, target.name));
      const gigabytes = weightBytes(campaign.baseModel.path) / 1e9;
      const rates = ratesOf({ campaign, reports, gigabytes, ...(file && { file }) });
      const given = await selectedBefore(campaign);
      const capabilities = options.capabilities ?? given ?? publishedRun.capabilities;
      const plan = estimate({ campaign, tasks: target.tasks, capabilities, rates });
      const disk = await plannedDisk({ campaign, plan, home: home.root });
      const languageModels = plannedQuestions({
        campaign,
        rollouts: target.tasks.train * campaign.rollouts.perTask,
        capabilities,
        purposes: plan.purposes,
        description: target.description,
        trajectory: await trajectoryTokens(reports, home),
      });
      console.log(
        options.json
          ? JSON.stringify({
              campaign: campaign.name,
              target: target.name,
              note: target.note,
              parts,
              ...plan,
              disk,
              languageModels,
            })
          : wrapText(planText({ campaign, target, parts, plan, disk, given, languageModels }), process.stdout.columns),
      );
      if (parts.some(({ ok }) => !ok)) process.exitCode = 1;
    });
}

/** What `analyst` of a kind that can't be opened would select is not known either: the checks say why. */
async function selectedBefore({ analyst }: Campaign): Promise<number | undefined> {
  const { kindOf } = await import('../../domain/kinds.js');
  const { registry } = await import('../../registry.js');
  try {
    return (await kindOf(registry.analysts, analyst).open(analyst, undefined)).selected;
  } catch {
    return undefined;
  }
}

/** Whether a report is of the same base model and target: then a rollout costs the same. */
const isLike = ({ campaign }: Report, { baseModel }: Campaign, target: string): boolean =>
  campaign.target.name === target && campaign.baseModel.startsWith(`${basename(baseModel.path)}@`);

/** 0 where there is no such folder yet: `doctor` says so. */
const weightBytes = (folder: string): number =>
  existsSync(folder)
    ? readdirSync(folder)
        .filter((name) => name.endsWith('.safetensors'))
        .reduce((sum, name) => sum + statSync(join(folder, name)).size, 0)
    : 0;

/** @throws UserError with the file, the field and what is right. */
async function readRates(path: string): Promise<RatesFile> {
  const { parse } = await import('yaml');
  const { ratesFileSchema } = await import('../plan/rates.js');
  let value: unknown;
  try {
    value = parse(readFileSync(path, 'utf8'));
  } catch (error) {
    throw new UserError(`--rates ${path}: ${messageOf(error)}; name a YAML or JSON file`);
  }
  const parsed = ratesFileSchema.safeParse(value);
  if (parsed.success) return parsed.data;
  const [issue] = parsed.error.issues;
  throw new UserError(
    `--rates ${path}: ${issue?.path.join('.') || 'file'}: ${issue?.message}; docs/plan.md has the form`,
  );
}
