/**
 * `campaign analyse`: from files of conversations to pages. Invariants: files and fields are checked, and the cost is told, before anything is
 * asked; nothing is asked without a yes; what was paid for is kept, so that the same command goes on; a result is written whole or not at all.
 */
import { join } from 'node:path';
import { createInterface } from 'node:readline/promises';
import type { Analyst, AnalystKind } from '../../analyst/analyst';
import { openFolderStore } from '../../artifacts/folder-store';
import type { ArtifactStore } from '../../artifacts/store';
import { type SelectionRule, selectionRuleSchema } from '../../domain/campaign';
import { type Budget, languageModelFields } from '../../domain/endpoints';
import { OutsideFailure } from '../../domain/failures';
import { keyOf } from '../../language-model/endpoint';
import { openLedger, spentOf } from '../../language-model/ledger';
import { registry } from '../../registry';
import { wholeNumber } from '../../report/format';
import { UserError } from '../errors';
import { type CommonOptions, homeOf } from '../options';
import { plain } from '../../terminal';
import { onInterrupt } from '../run/supervisor';
import { buildAnalysis } from './build';
import { type Conversations, loadConversations, withoutTooLong } from './conversations';
import { estimateLines } from './estimate';
import { checkClaim, type Claim, claimOf, nameOf, type Place, placeOf, takeName } from './folder';
import { createProgress } from './progress';
import { analystSpec, type AnalystSpec, type SpecOptions } from './spec';
import { type AnalysisResult, type Finished, finishedSteps, reasonHere, runSteps } from './steps';
import { resultText } from './text';
import { writeResult } from './write';

export interface AnalyseOptions extends SpecOptions, CommonOptions {
  passes?: number;
  votes?: number;
  name?: string;
  scorer?: string;
  maxDollars?: number;
  yes?: boolean;
}

/** All that is known before anything is asked. */
interface Plan {
  files: readonly string[];
  place: Place;
  conversations: Conversations;
  spec: AnalystSpec;
  analyst: Analyst;
  rule: SelectionRule;
  budget: Budget;
  store: ArtifactStore;
  claim: Claim;
}

/** Everything but the result goes to stderr. */
const tell = (line: string): void => void process.stderr.write(`${plain(line)}\n`);

/** @returns the exit code. */
export async function analyse(files: readonly string[], options: AnalyseOptions): Promise<number> {
  const plan = await prepare(files, options);
  const finished = await finishedSteps(plan);
  const isFinished = nothingToAsk(finished, plan.rule);
  if (!isFinished) requireKey(plan.spec);
  for (const line of estimateLines({ ...plan, finished })) tell(line);
  const interruption = onInterrupt({ onFirst: () => undefined, onSecond: () => undefined });
  const { signal } = interruption;
  try {
    if (!isFinished && !(await allowed(options, signal))) {
      tell('nothing was asked, and nothing is spent');
      return 1;
    }
    await takeName(plan);
    const result = await run(plan, signal);
    console.log(await write(plan, result, options));
    return 0;
  } catch (error) {
    if (signal.aborted) {
      tell('stopped; every reply that came is kept: the same command goes on from there');
      return 130;
    }
    throw inCommandsWords(error);
  } finally {
    interruption.dispose();
  }
}

async function prepare(files: readonly string[], options: AnalyseOptions): Promise<Plan> {
  const home = homeOf(options);
  const rule = ruleOf(options);
  const kind = askingKind();
  const spec = analystSpec(options, kind);
  const budget: Budget = options.maxDollars === undefined ? {} : { dollars: options.maxDollars };
  if (budget.dollars !== undefined && !spec.price)
    throw new UserError('--max-dollars needs prices to count by; give --price-input and --price-output');
  const name = nameOf({ home, files, name: options.name });
  const all = await loadConversations({ files, scorer: options.scorer, name });
  const place = placeOf({ home, name });
  const analyst = await opened(() => kind.open(spec, undefined));
  const unsuited = analyst.unsuited?.(all.description, rule);
  if (unsuited !== undefined) throw new UserError(unsuited);
  const conversations = withoutTooLong({ conversations: all, analyst, rule });
  const { total, failed, passed, tokens } = conversations.counts;
  tell(
    `${wholeNumber(total)} conversations: ${wholeNumber(failed)} failed, ${wholeNumber(passed)} passed; about ${wholeNumber(tokens)} tokens`,
  );
  for (const note of conversations.notes) tell(`note: ${note}`);
  const store = openFolderStore(join(home.root, 'artifacts'));
  const claim = claimOf({ ids: all.ids, files });
  await checkClaim({ place, claim, store });
  return { files, place, conversations, spec, analyst, rule, budget, store, claim };
}

/** The kind of analyst that asks a language model, whatever it is called. */
function askingKind(): AnalystKind {
  const kind = registry.analysts.find(({ options }) =>
    Object.keys(languageModelFields).every((field) => field in options),
  );
  if (!kind) throw new Error('no kind of analyst asks a language model');
  return kind;
}

async function opened<T>(open: () => T | Promise<T>): Promise<T> {
  try {
    return await open();
  } catch (error) {
    throw inCommandsWords(error);
  }
}

/** Before anything is asked, or a yes is asked for. */
function requireKey({ apiKeyEnv }: AnalystSpec): void {
  try {
    keyOf('--api-key-env', apiKeyEnv);
  } catch (error) {
    throw inCommandsWords(error);
  }
}

/** Votes that are not given are as many of the passes as the method asks for, 8 of 10. */
function ruleOf({ passes, votes }: Pick<AnalyseOptions, 'passes' | 'votes'>): SelectionRule {
  const usual = selectionRuleSchema.parse({});
  const of = passes ?? usual.passes;
  const needed = votes ?? Math.ceil((usual.votes * of) / usual.passes);
  if (needed > of)
    throw new UserError(`--votes is ${needed} and --passes is ${of}; no capability can have more votes than passes`);
  return { ...usual, passes: of, votes: needed };
}

const nothingToAsk = ({ candidates, passes }: Finished, rule: SelectionRule): boolean =>
  candidates?.length === 0 || (candidates !== undefined && passes === rule.passes);

async function allowed({ yes }: AnalyseOptions, signal: AbortSignal): Promise<boolean> {
  if (yes) return true;
  if (!process.stdin.isTTY || !process.stderr.isTTY)
    throw new UserError('there is no terminal to ask on whether to go on; give --yes');
  return confirmed('Go on?', signal);
}

/** Without an answer, or a terminal to ask on, it is no. */
async function confirmed(question: string, signal: AbortSignal): Promise<boolean> {
  const lines = createInterface({ input: process.stdin, output: process.stderr });
  try {
    // The end of the input is no answer, and neither is Ctrl-C.
    lines.once('SIGINT', () => lines.close());
    const closed = new Promise<string>((resolve) => lines.once('close', () => resolve('')));
    const answer = await Promise.race([lines.question(`${question} [y/N] `, { signal }), closed]);
    return /^\s*y(es)?\s*$/i.test(answer);
  } finally {
    lines.close();
  }
}

async function run({ place, budget, ...plan }: Plan, signal: AbortSignal): Promise<AnalysisResult> {
  const progress = createProgress({ passes: plan.rule.passes, out: process.stderr });
  const ledger = openLedger({
    store: plan.store,
    campaign: place.name,
    budget,
    role: 'analyst',
    onText: progress.received,
  });
  try {
    return await runSteps({ ...plan, ledger: progress.counting(ledger), progress, signal });
  } finally {
    progress.close();
  }
}

/** @returns what is printed. */
async function write(plan: Plan, result: AnalysisResult, { json }: AnalyseOptions): Promise<string> {
  const { place, conversations, spec, store } = plan;
  const { name, html } = place;
  const spent = await spentOf({ store, campaign: name });
  const analyst = { ...plan.analyst.identity, model: spec.model };
  const analysis = buildAnalysis({ ...plan, name, analyst, result, spent });
  const { candidates } = result.discovery;
  const given = await writeResult({ place, analysis, candidates, passes: result.passes, ids: conversations.ids });
  return json ? JSON.stringify(analysis, null, 2) : resultText({ analysis, html, given });
}

/** Failures speak of a campaign file's fields; here they are flags. */
function inCommandsWords(error: unknown): unknown {
  if (!(error instanceof OutsideFailure)) return error;
  const [first = '', ...others] = reasonHere(error).split('\n');
  const fields = first.includes('analyst.')
    ? ['analyst.* here: --url, --model, --api-key-env, or fields of --config']
    : [];
  return new UserError(first, [
    ...others,
    ...fields,
    ...(error.retryable ? ['the same command goes on: every reply that came is kept'] : []),
  ]);
}
