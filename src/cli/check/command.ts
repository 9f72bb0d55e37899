/** `campaign check`: requirements, first turns of the base model, conduct of the target, cost and sensitivity of a campaign; or a program or module. */
import { resolve } from 'node:path';
import { type Check, runChecks } from '../../checks/check';
import type { Campaign } from '../../domain/campaign';
import { detectableDifference } from '../../domain/power';
import { plainText } from '../../domain/plain-text';
import { PUBLISHED_CAPABILITIES } from '../../domain/presets';
import { kindOf } from '../../domain/kinds';
import type { Finding } from '../../environments/conformance';
import { processKind } from '../../environments/process';
import { withPlugins } from '../../plugins';
import { note, print, wrapText } from '../../terminal';
import { loadCampaign } from '../campaign-file';
import { InputError, messageOf } from '../errors';
import { type CommonOptions, homeOf } from '../options';
import { allReports } from '../reports';
import { INTERRUPTED } from '../run/supervisor';
import { checkTarget, findingText } from './environment';
import { type FirstTurns, firstTurns } from './first-turns';
import { plannedRequests, trajectoryTokens } from './language-models';
import { checkModule, isModuleFile, moduleLines } from './module';
import { checkLines, requirements } from './requirements';
import { costLines, detectableLines, firstTurnLines, requestLines } from './text';
import { openOnce, splitOf } from './target';
import { costOfWork, countWork, isLike, measuredBase } from './work';

const say = (line: string): void => note(wrapText(plainText(line), process.stderr.columns));
const show = (lines: readonly string[]): void => {
  for (const line of lines) print(wrapText(plainText(line), process.stdout.columns));
};

interface CheckOptions extends CommonOptions {
  /** The target of a campaign file alone. */
  target?: boolean;
}

/** @returns the exit code. Words after `--` are a program's command line. */
export async function check(words: string[], options: CheckOptions): Promise<number> {
  if (process.argv.includes('--')) return checkProgram(words, options);
  const [file, ...more] = words;
  if (more.length > 0) {
    const fix = 'name one file, or write a program after --';
    throw new InputError({ code: 'invalid_argument', field: 'target', value: words.join(' '), fix });
  }
  if (file === undefined) return checkMachine(options);
  if (isModuleFile(file)) return showModule(file, options);
  return options.target ? showTarget(file, loadCampaign({ file }), options) : checkCampaign(file, options);
}

async function checkMachine(options: CommonOptions): Promise<number> {
  const checks = await runChecks(requirements({ home: homeOf(options), closely: true }));
  if (options.json) print(JSON.stringify({ requirements: checks }));
  else show(checkLines(checks, process.stdout.columns));
  return exitCode(checks, []);
}

async function showModule(file: string, { json }: CommonOptions): Promise<number> {
  const found = await checkModule({ file, say });
  if (json) print(JSON.stringify(found));
  else show(moduleLines(found));
  return found.passed ? 0 : 1;
}

async function checkProgram(command: string[], options: CommonOptions): Promise<number> {
  if (command.length === 0) {
    const fix = 'write it after --, such as: campaign check -- python3 bridge.py';
    throw new InputError({ code: 'invalid_argument', field: 'program', fix });
  }
  const target = { kind: processKind.kind, command, cwd: resolve('.') };
  return showTarget(command.join(' '), { target, plugins: [] }, options);
}

async function showTarget(
  name: string,
  campaign: Pick<Campaign, 'target' | 'plugins'>,
  options: CheckOptions,
): Promise<number> {
  const findings = await checkTarget({ target: campaign, home: homeOf(options), say, onCheck: say });
  if (!findings) return INTERRUPTED;
  if (options.json) print(JSON.stringify({ findings }));
  else show(findingLines(name, findings));
  return exitCode([], findings);
}

const findingLines = (name: string, findings: readonly Finding[]): string[] =>
  findings.length > 0 ? findings.map(findingText) : [`${name} keeps the contract`];

const exitCode = (checks: readonly Check[], findings: readonly Finding[]): number =>
  checks.every(({ ok }) => ok) && findings.length === 0 ? 0 : 1;

/** Requirements without which no turn of the base model can be sampled. */
const forTurns = [
  'home folder',
  'temporary files',
  'store',
  'Python',
  'Python packages',
  'base model',
  'policy server',
];

async function checkCampaign(file: string, options: CommonOptions): Promise<number> {
  const home = homeOf(options);
  const campaign = loadCampaign({ file });
  const ask = openOnce(campaign, home);
  const section = (title: string, lines: readonly string[]) => {
    if (!options.json) show([...(title === first ? [] : ['']), title, ...lines]);
  };
  const first = 'Requirements';

  const checks = await runChecks(requirements({ home, campaign, closely: true, ask }));
  section(first, checkLines(checks, process.stdout.columns));

  const opened = await ask().catch(() => undefined);
  const failed = checks.filter(({ name, ok }) => !ok && forTurns.includes(name)).map(({ name }) => name);
  const missing = [...failed, ...(opened ? [] : ['target environment'])];
  const turns = missing.length > 0 ? `not sampled; missing: ${missing.join(', ')}` : await sample();
  section('First turns of the base model', firstTurnLines(turns));

  async function sample(): Promise<FirstTurns | string> {
    if (campaign.policyServer.kind === 'embedded') say('starting the policy server');
    return firstTurns(campaign, home).catch((error: unknown) => `not sampled; ${messageOf(error)}`);
  }

  const seen: string[] = [];
  const findings = opened ? await checkTarget({ target: campaign, home, say: (line) => void seen.push(line) }) : [];
  if (!findings) return INTERRUPTED;
  const name = opened?.description.name ?? campaign.target.kind;
  section('Target', opened ? [...seen, ...findingLines(name, findings)] : ['not checked; it does not describe itself']);

  const tasks = splitOf(campaign, opened);
  const reports = allReports(home.root).filter((report) => isLike(report, campaign, name));
  const given = await selectedBefore(campaign);
  const work = countWork({ campaign, tasks: tasks.taken, capabilities: given ?? PUBLISHED_CAPABILITIES });
  const cost = costOfWork({ campaign, work, reports });
  section('Rollouts and cost', costLines({ tasks, work, cost, isGiven: given !== undefined }));

  const trajectory = await trajectoryTokens(reports, home);
  const requests = plannedRequests({ campaign, work, description: opened?.description, trajectory });
  if (requests.questions.length > 0) section('Language models', requestLines(requests));

  const { test } = tasks.taken;
  const { trials } = campaign.evaluation;
  const base = measuredBase(reports);
  const difference = detectableDifference({ tasks: test, trials, base: base?.rate ?? 0.5 });
  const detectable = { tasks: test, trials, base, difference };
  section('Smallest difference that the test tasks can show', detectableLines(detectable));

  if (options.json) {
    const sampledTurns = typeof turns === 'string' ? { problem: turns } : turns;
    const { capabilities, purposes } = work;
    const planned = { capabilities, tasks, purposes, ...cost, languageModels: requests, detectable };
    print(JSON.stringify({ requirements: checks, firstTurns: sampledTurns, target: name, findings, ...planned }));
  }
  return exitCode(checks, findings);
}

/** Returns how many capabilities an analyst selects whatever the rollouts show; undefined if they decide. */
async function selectedBefore({ analyst, plugins }: Campaign): Promise<number | undefined> {
  const kind = kindOf(withPlugins(plugins).analysts, analyst);
  // A check reports an analyst that cannot be opened.
  const open = async () => kind.open(analyst, undefined);
  return (await open().catch(() => undefined))?.selected;
}
