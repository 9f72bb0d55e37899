/** `campaign plan`: the target's tasks, earlier reports and the base model's weights, put together. It reads only, and starts no service. */
import { existsSync, readdirSync, statSync } from 'node:fs';
import { basename, join } from 'node:path';
import { runChecks, partChecks } from '../../checks/check';
import type { Campaign } from '../../domain/campaign';
import { kindOf } from '../../domain/kinds';
import { publishedRun } from '../../domain/presets';
import { loraModules } from '../../policy/base-model';
import { registry } from '../../registry';
import type { Report } from '../../report/model';
import { wrapText } from '../../terminal';
import { loadCampaign } from '../campaign-file';
import { freeBytes } from '../checks/machine';
import { readInput } from '../input';
import { targetTasks } from '../open-target';
import { type CommonOptions, homeOf } from '../options';
import { pythonPath } from '../project';
import { allReports } from '../reports';
import { countWork, estimate, type PlannedWork } from './estimate';
import { plannedQuestions } from './language-models';
import { type RatesFile, ratesFileSchema, ratesOf, trajectoryTokens } from './rates';
import { type DiskPlan, planText } from './text';

export interface PlanOptions extends CommonOptions {
  capabilities?: number;
  rates?: string;
}

/** @returns the exit code. */
export async function plan(path: string, options: PlanOptions): Promise<number> {
  const home = homeOf(options);
  const campaign = loadCampaign({ file: path });
  const file = options.rates === undefined ? undefined : { path: options.rates, rates: readRates(options.rates) };
  const target = await targetTasks(campaign, home);
  const { name, note, tasks, description } = target;
  const parts = await runChecks(partChecks({ campaign, describe: async () => description, registry }));
  const reports = allReports(home.root).filter((report) => isLike(report, campaign, name));
  const given = await selectedBefore(campaign);
  const capabilities = options.capabilities ?? given ?? publishedRun.capabilities;
  const work = countWork({ campaign, tasks, capabilities });
  const gigabytes = weightBytes(campaign.baseModel.path) / 1e9;
  const counted = estimate(campaign, work, ratesOf({ campaign, reports, gigabytes, file }));
  const disk = await plannedDisk({ campaign, work, home: home.root });
  const trajectory = await trajectoryTokens(reports, home);
  const languageModels = plannedQuestions({ campaign, work, description, trajectory });
  if (options.json)
    console.log(
      JSON.stringify({ campaign: campaign.name, target: name, note, parts, ...counted, disk, languageModels }),
    );
  else {
    const text = planText({ campaign, target, parts, work, plan: counted, disk, given, languageModels });
    console.log(wrapText(text, process.stdout.columns));
  }
  return parts.every(({ ok }) => ok) ? 0 : 1;
}

/** What an analyst that can't be opened would select is not known either: the checks say why. */
async function selectedBefore({ analyst }: Campaign): Promise<number | undefined> {
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
  (existsSync(folder) ? readdirSync(folder) : [])
    .filter((name) => name.endsWith('.safetensors'))
    .reduce((all, name) => all + statSync(join(folder, name)).size, 0);

const readRates = (file: string): RatesFile =>
  readInput({ file, named: `--rates ${file}`, schema: ratesFileSchema, fix: 'docs/plan.md has the form' });

/** Factors A and B, in float32. */
const BYTES = 4;
/** Each step's adapter is in the store, and laid out for the policy server. */
const COPIES = 2;
/** A checkpoint has the adapter and Adam's two moments of it. */
const CHECKPOINT = 3;

/** Undefined where the base model, or the Python that would look at it, is not there yet. */
export async function plannedDisk(o: {
  campaign: Campaign;
  work: Pick<PlannedWork, 'purposes'>;
  home: string;
}): Promise<DiskPlan | undefined> {
  const { baseModel, training } = o.campaign;
  const { r, targetModules } = training.lora;
  if (!existsSync(baseModel.path)) return undefined;
  const asked = { python: pythonPath(), model: baseModel.path, targetModules, home: o.home };
  const { modules } = await loraModules(asked).catch(() => ({ modules: [] }));
  if (modules.length === 0) return undefined;
  const adapterBytes = modules.reduce((all, module) => all + (module.in + module.out) * module.experts * r * BYTES, 0);
  const rollouts = o.work.purposes.find(({ purpose }) => purpose === 'training')?.rollouts.high ?? 0;
  const steps = rollouts / (training.groupsPerStep * training.groupSize);
  const bytes = adapterBytes * steps * (COPIES + CHECKPOINT / training.checkpointEvery);
  return { adapterBytes, bytes, freeBytes: freeBytes(o.home) };
}
