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
import { columnsOf, note, print, wrapText } from '../../terminal';
import { loadCampaign, loadTarget } from '../campaign-file';
import { InputError, messageOf } from '../errors';
import { type CommonOptions, homeOf } from '../options';
import { allReports } from '../reports';
import { INTERRUPTED } from '../services/supervisor';
import { checkTarget } from './environment';
import { type FirstTurns, firstTurns } from './first-turns';
import { plannedRequests } from './language-models';
import { checkModule, isModuleFile } from './module';
import { checkLines, requirements } from './requirements';
import { costLines, detectableLines, firstTurnLines, requestLines } from './text';
import { openOnce, splitOf } from './target';
import { costOfWork, countWork, isLike, measuredBase } from './work';

const say = (line: string): void => note(wrapText(plainText(line), columnsOf(process.stderr)));
const show = (lines: readonly string[]): void => {
  for (const line of lines) print(wrapText(plainText(line), columnsOf()));
};

interface CheckOptions extends CommonOptions {
  /** The target of a campaign file alone. */
  target?: boolean;
}

/** @returns the exit code. Words after `--` are a program's command line. */
export async function check(words: string[], options: CheckOptions): Promise<number> {
  const isProgram = process.argv.includes('--');
  const [file, ...more] = words;
  if (isProgram ? file === undefined : more.length > 0) {
    const fix = 'name one file, or write a program after --, such as: campaign check -- python3 bridge.py';
    throw new InputError({ code: 'invalid_argument', field: 'target', value: words.join(' '), fix });
  }
  if (file === undefined) {
    const checks = await runChecks(requirements({ home: homeOf(options) }));
    return finish(options, { json: { requirements: checks }, lines: checkLines(checks, columnsOf()), checks });
  }
  if (!isProgram && isModuleFile(file)) return finishFindings(file, await checkModule({ file, say }), options);
  if (!isProgram && !options.target) return checkCampaign(file, options);
  const program = { kind: processKind.kind, command: words, cwd: resolve('.') };
  const target = isProgram ? { target: program, plugins: [] } : loadTarget(file);
  const findings = await checkTarget({ target, home: homeOf(options), say, onCheck: say });
  return findings ? finishFindings(words.join(' '), findings, options) : INTERRUPTED;
}

interface Result {
  json: object;
  lines: readonly string[];
  checks?: readonly Check[];
  findings?: readonly Finding[];
}

/** Prints a result. @returns the exit code. */
function finish(options: CommonOptions, { json, lines, checks = [], findings = [] }: Result): number {
  if (options.json) print(JSON.stringify(json));
  else show(lines);
  return checks.every(({ ok }) => ok) && findings.length === 0 ? 0 : 1;
}

const finishFindings = (name: string, findings: readonly Finding[], options: CommonOptions): number =>
  finish(options, { json: { findings }, lines: findingLines(name, findings), findings });

const findingLines = (name: string, findings: readonly Finding[]): string[] =>
  findings.length > 0
    ? findings.map(({ check, problem, fix }) => `${check}: ${problem}; ${fix}`)
    : [`${name} keeps the contract`];

/** Requirements without which no turn of the base model can be sampled. */
const forTurns = ['home folder', 'store', 'Python', 'base model', 'policy server'];

async function checkCampaign(file: string, options: CommonOptions): Promise<number> {
  const home = homeOf(options);
  const campaign = loadCampaign({ file });
  const ask = openOnce(campaign, home);
  const section = (title: string, lines: readonly string[]) => {
    if (!options.json) show([...(title === first ? [] : ['']), title, ...lines]);
  };
  const first = 'Requirements';

  const checks = await runChecks(requirements({ home, campaign, closely: true, ask }));
  section(first, checkLines(checks, columnsOf()));

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
  const work = countWork({ campaign, tasks, capabilities: given ?? PUBLISHED_CAPABILITIES });
  const cost = costOfWork({ campaign, work, reports });
  section('Rollouts and cost', costLines({ work, cost, isGiven: given !== undefined }));

  const requests = plannedRequests({ campaign, work });
  if (requests.questions.length > 0) section('Language models', requestLines(requests));

  const { test } = tasks;
  const { trials } = campaign.evaluation;
  const base = measuredBase(reports);
  const difference = detectableDifference({ tasks: test, trials, base: base?.rate ?? 0.5 });
  const detectable = { tasks: test, trials, base, difference };
  section('Smallest difference that the test tasks can show', detectableLines(detectable));

  const { capabilities, purposes } = work;
  const json = {
    requirements: checks,
    firstTurns: typeof turns === 'string' ? { problem: turns } : turns,
    target: name,
    findings,
    ...{ capabilities, tasks, purposes, ...cost, languageModels: requests, detectable },
  };
  return finish(options, { json, lines: [], checks, findings });
}

/** Returns how many capabilities an analyst selects whatever the rollouts show; undefined if they decide. */
async function selectedBefore({ analyst, plugins }: Campaign): Promise<number | undefined> {
  const kind = kindOf(withPlugins(plugins).analysts, analyst);
  // A check reports an analyst that cannot be opened.
  const open = async () => kind.open(analyst, undefined);
  return (await open().catch(() => undefined))?.selected;
}
