/**
 * `campaign analyse`: from files of conversations to pages. Invariants: files and fields are checked, and the cost is told, before anything is
 * asked; nothing is asked without a yes; what was paid for is kept, so that the same command goes on; a result is written whole or not at all.
 */
import type { AnalystKind } from '../../analyst/analyst';
import { openStore } from '../../artifacts/open-store';
import { notingUsage } from '../../artifacts/usage';
import { type SelectionRule, selectionRuleSchema } from '../../domain/campaign';
import { type Budget, costOf, languageModelFields } from '../../domain/endpoints';
import { OutsideFailure } from '../../domain/failures';
import { keyOf } from '../../language-model/endpoint';
import { openLedger, spentOf } from '../../language-model/ledger';
import { registry } from '../../registry';
import { dollarsText, wholeNumber } from '../../report/format';
import { plain } from '../../terminal';
import { confirmed } from '../confirm';
import { UserError } from '../errors';
import { type CommonOptions, homeOf } from '../options';
import { onInterrupt } from '../run/supervisor';
import { loadConversations } from './conversations';
import { checkClaim, claimOf, nameOf, placeOf, takeName, writeResult } from './folder';
import { analysisText } from './page';
import { showProgress } from './progress';
import { type Analysis, buildAnalysis } from './result';
import { analystSpec, type SpecOptions } from './spec';
import { type AnalysisResult, type Finished, finishedSteps, openAnalysis, reasonHere, runSteps } from './steps';

export interface AnalyseOptions extends SpecOptions, CommonOptions {
  passes?: number;
  votes?: number;
  name?: string;
  scorer?: string;
  maxDollars?: number;
  yes?: boolean;
}

/** Everything but the result goes to stderr. */
const tell = (line: string): void => void process.stderr.write(`${plain(line)}\n`);

/** @returns the exit code. */
export async function analyse(files: readonly string[], options: AnalyseOptions): Promise<number> {
  const interruption = onInterrupt({ onFirst: () => undefined, onSecond: () => undefined });
  const { signal } = interruption;
  try {
    const plan = await prepare(files, options);
    const finished = await finishedSteps(plan.analysis, plan.rule);
    const left = finished.candidates?.length === 0 ? 0 : plan.rule.passes - finished.passes;
    const isFinished = finished.candidates !== undefined && left === 0;
    if (!isFinished) keyOf('--api-key-env', plan.spec.apiKeyEnv);
    for (const line of estimateLines(plan, finished, left)) tell(line);
    if (!isFinished && !options.yes && !(await confirmed('go on', signal))) {
      tell('nothing was asked, and nothing is spent');
      return 1;
    }
    await takeName(plan);
    console.log(await write(plan, await run(plan, signal), options));
    return 0;
  } catch (error) {
    if (!signal.aborted) throw inCommandsWords(error);
    tell('stopped; every reply that came is kept: the same command goes on from there');
    return 130;
  } finally {
    interruption.dispose();
  }
}

type Plan = Awaited<ReturnType<typeof prepare>>;

/** All that is known before anything is asked. */
async function prepare(files: readonly string[], options: AnalyseOptions) {
  const home = homeOf(options);
  const rule = ruleOf(options);
  const kind = askingKind();
  const spec = analystSpec(options, kind);
  const budget: Budget = options.maxDollars === undefined ? {} : { dollars: options.maxDollars };
  if (budget.dollars !== undefined && !spec.price)
    throw new UserError('--max-dollars needs prices to count by; give --price-input and --price-output');
  const name = nameOf(home, files, options.name);
  const analyst = await kind.open(spec, undefined);
  const conversations = await loadConversations({ files, scorer: options.scorer, name, analyst, rule });
  const { total, failed, passed, tokens } = conversations.counts;
  tell(
    `${wholeNumber(total)} conversations: ${wholeNumber(failed)} failed, ${wholeNumber(passed)} passed; about ${wholeNumber(tokens)} tokens`,
  );
  for (const note of conversations.notes) tell(`note: ${note}`);
  const place = placeOf(home, name);
  const kept = await openStore(home.root);
  const claim = claimOf(conversations, files);
  await checkClaim({ place, claim, store: kept });
  // A campaign that shares its replies may be deleted.
  const store = notingUsage(kept, () => name);
  const analysis = await openAnalysis(store, analyst, conversations);
  return { files: [...files], place, conversations, spec, analyst, rule, budget, store, claim, analysis };
}

/** The kind of analyst that asks a language model, whatever it is called. */
function askingKind(): AnalystKind {
  const kind = registry.analysts.find(({ options }) =>
    Object.keys(languageModelFields).every((field) => field in options),
  );
  if (!kind) throw new Error('no kind of analyst asks a language model');
  return kind;
}

/** Votes that are not given are as many of the passes as the method asks for, 8 of 10. */
function ruleOf(given: Pick<AnalyseOptions, 'passes' | 'votes'>): SelectionRule {
  const usual = selectionRuleSchema.parse({});
  const { passes = usual.passes } = given;
  const { votes = Math.ceil((usual.votes * passes) / usual.passes) } = given;
  if (votes > passes)
    throw new UserError(`--votes is ${votes} and --passes is ${passes}; no capability can have more votes than passes`);
  return { ...usual, passes, votes };
}

/** How much it will take, what that depends on, and what leaves the machine; `left`: passes. */
function estimateLines(plan: Plan, finished: Finished, left: number): string[] {
  const { analyst, conversations, rule, spec } = plan;
  const { candidates, passes } = finished;
  const planned = analyst.estimate?.({ ...conversations, rule, candidates });
  const sum = (field: 'requests' | 'promptTokens' | 'completionTokens') =>
    planned ? (candidates ? 0 : planned.discovery[field]) + left * planned.pass[field] : 0;
  const [requests, promptTokens, completionTokens] = [sum('requests'), sum('promptTokens'), sum('completionTokens')];
  const { dollars } = costOf({ promptTokens, completionTokens, cachedTokens: 0 }, spec.price);
  // To two digits: more would pretend.
  const rounded = (count: number) => wholeNumber(Number(count.toPrecision(2)));
  const done = [
    ...(candidates ? [`discovery (${candidates.length} candidates)`] : []),
    ...(passes > 0 ? [`${passes} passes`] : []),
  ];
  return [
    `estimate: about ${wholeNumber(requests)} requests to ${spec.model}, ${rounded(promptTokens)} tokens in, ${rounded(completionTokens)} out` +
      (dollars === undefined ? '' : `, ${dollarsText(dollars)}`),
    '  More if the model reasons at length or answers have to be repaired; less where the endpoint caches prompts.' +
      (spec.price ? '' : ' Dollars with --price-input and --price-output.'),
    ...(requests > 0
      ? [
          `  Sent to ${spec.url}: policy, tools and conversations, of each message its first ${wholeNumber(spec.messageChars)} ` +
            `characters and of a call's arguments ${wholeNumber(spec.argumentChars)}.`,
        ]
      : []),
    ...(done.length > 0 ? [`  Finished already and not asked for again: ${done.join(', ')}.`] : []),
  ];
}

async function run({ place, budget, store, analysis, rule }: Plan, signal: AbortSignal): Promise<AnalysisResult> {
  const progress = showProgress(rule.passes, process.stderr);
  const { name: campaign } = place;
  const ledger = openLedger({ store, campaign, budget, role: 'analyst', onText: progress.received });
  try {
    return await runSteps({ analysis, rule, ledger: progress.counting(ledger), progress, signal });
  } finally {
    progress.close();
  }
}

/** @returns what is printed. */
async function write(plan: Plan, result: AnalysisResult, { json }: AnalyseOptions): Promise<string> {
  const { place, conversations, spec, store } = plan;
  const { name } = place;
  const { kind, version } = plan.analyst.identity;
  const spent = await spentOf({ store, campaign: name });
  const analysis = buildAnalysis({ ...plan, name, analyst: { kind, version, model: spec.model }, result, spent });
  const { discovery, passes } = result;
  const given = await writeResult({
    place,
    analysis,
    candidates: discovery.candidates,
    passes,
    ids: conversations.ids,
  });
  if (json) return JSON.stringify(analysis, null, 2);
  return plain([analysisText(analysis), '', place.html, ...goOn(analysis, given)].join('\n'));
}

/** Lines of a campaign file that goes on from here. */
function goOn({ passes, rule }: Analysis, given: string | undefined): string[] {
  if (given === undefined) return [];
  const usual = selectionRuleSchema.parse({});
  const isUsual = passes === usual.passes && rule.votes === usual.votes;
  return [
    '',
    'a campaign goes on from here with',
    `  analyst: { kind: given, capabilities: ${JSON.stringify(given)} }`,
    ...(isUsual ? [] : [`  selection: { passes: ${passes}, votes: ${rule.votes} }`]),
  ];
}

/** Failures speak of a campaign file's fields; here they are flags. */
function inCommandsWords(error: unknown): unknown {
  if (!(error instanceof OutsideFailure)) return error;
  const [first = '', ...others] = reasonHere(error).split('\n');
  return new UserError(first, [
    ...others,
    ...(first.includes('analyst.') ? ['analyst.* here: --url, --model, --api-key-env, or fields of --config'] : []),
    ...(error.retryable ? ['the same command goes on: every reply that came is kept'] : []),
  ]);
}
