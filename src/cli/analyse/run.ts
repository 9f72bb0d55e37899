/**
 * `campaign analyse`: from files of conversations to pages. Invariants: files and fields are checked, and the cost is told, before anything is
 * asked; nothing is asked without a yes; what was paid for is kept, so that the same command goes on; a result is written whole or not at all.
 */
import { join } from 'node:path';
import type { Analyst } from '../../analyst/analyst';
import type { ArtifactStore } from '../../artifacts/store';
import { selectionRuleSchema, type SelectionRule } from '../../domain/campaign';
import { OutsideFailure } from '../../domain/failures';
import { kindOf } from '../../domain/kinds';
import type { Budget } from '../../domain/endpoints';
import { keyOf } from '../../language-model/endpoint';
import { openLedger, spentOf } from '../../language-model/ledger';
import { wholeNumber } from '../../report/format';
import { UserError } from '../errors';
import { openFolderStore } from '../../artifacts/folder-store';
import { registry } from '../../registry';
import { homeOf, type CommonOptions } from '../options';
import { plain } from '../plain';
import { onInterrupt } from '../run/supervisor';
import { buildAnalysis } from './build';
import { checkClaim, claimOf, takeName, type Claim } from './claim';
import { confirmed } from './confirm';
import { loadConversations, type Loaded } from './conversations';
import { estimate, estimateLines } from './estimate';
import { nameOf, placeOf, type Place } from './places';
import { analystSpec, type AnalystSpec, type SpecOptions } from './spec';
import { resultText } from './table';
import { withoutTooLong } from './too-long';
import { watchedLedger } from './watched-ledger';
import { createWatch } from './watch';
import { writeResult } from './write-result';
import { keptAlready, type Kept } from './kept';
import { findCapabilities, type Found } from './work';

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
  loaded: Loaded;
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
  const kept = await keptAlready(plan);
  const finished = isFinished(kept, plan.rule);
  if (!finished) requireKey(plan.spec);
  for (const line of estimateLines({ cost: estimate({ ...plan, kept }), spec: plan.spec, kept })) tell(line);
  const interruption = onInterrupt({ onFirst: () => undefined, onSecond: () => undefined });
  const { signal } = interruption;
  try {
    if (!finished && !(await allowed(options, signal))) {
      tell('nothing was asked, and nothing is spent');
      return 1;
    }
    await takeName(plan);
    const found = await work(plan, signal);
    console.log(await write(plan, found, options));
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
  const kind = kindOf(registry.analysts, { kind: 'llm' });
  const spec = analystSpec(options, kind);
  const budget: Budget = options.maxDollars === undefined ? {} : { dollars: options.maxDollars };
  if (budget.dollars !== undefined && !spec.price)
    throw new UserError('--max-dollars needs prices to count by; give --price-input and --price-output');
  const name = nameOf({ home, files, name: options.name });
  const all = await loadConversations({ files, scorer: options.scorer, name });
  const place = placeOf({ home, name });
  const loaded = withoutTooLong({ loaded: all, spec, rule });
  const { total, failed, passed, tokens } = loaded.counts;
  tell(
    `${wholeNumber(total)} conversations: ${wholeNumber(failed)} failed, ${wholeNumber(passed)} passed; about ${wholeNumber(tokens)} tokens`,
  );
  for (const note of loaded.notes) tell(`note: ${note}`);
  try {
    const analyst = await kind.open(spec, undefined);
    const unsuited = analyst.unsuited?.(loaded.description, rule);
    if (unsuited !== undefined) throw new UserError(unsuited);
    const store = openFolderStore(join(home.root, 'artifacts'));
    const claim = claimOf({ ids: all.ids, files });
    await checkClaim({ place, claim, store });
    return { files, place, loaded, spec, analyst, rule, budget, store, claim };
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

/** Whether all that would be asked is there. */
const isFinished = ({ candidates, passes }: Kept, rule: SelectionRule): boolean =>
  candidates === 0 || (candidates !== undefined && passes === rule.passes);

async function allowed({ yes }: AnalyseOptions, signal: AbortSignal): Promise<boolean> {
  if (yes) return true;
  if (!process.stdin.isTTY || !process.stderr.isTTY)
    throw new UserError('there is no terminal to ask on whether to go on; give --yes');
  return confirmed('Go on?', signal);
}

async function work({ place, rule, budget, store, ...plan }: Plan, signal: AbortSignal): Promise<Found> {
  const watch = createWatch({ passes: rule.passes, out: process.stderr });
  const opened = openLedger({ store, campaign: place.name, budget, heard: (piece) => watch.heard(piece) });
  const ledger = watchedLedger(opened, (all) => watch.spent(all));
  try {
    return await findCapabilities({ ...plan, rule, store, ledger, watch, signal });
  } finally {
    watch.close();
  }
}

/** @returns what is printed. */
async function write(plan: Plan, found: Found, { json }: AnalyseOptions): Promise<string> {
  const { files, place, loaded, spec, analyst, rule, budget, store } = plan;
  const { kind, version } = analyst.identity;
  const spent = await spentOf({ store, campaign: place.name });
  const model = { kind, version, model: spec.model };
  const analysis = buildAnalysis({ name: place.name, files, analyst: model, loaded, rule, found, budget, spent });
  const { candidates } = found.discovery;
  const given = await writeResult({ place, analysis, candidates, passes: found.passes, ids: loaded.ids });
  return json ? JSON.stringify(analysis, null, 2) : resultText({ analysis, html: place.html, given });
}

/** Failures speak of a campaign file's fields; here they are flags. */
function inCommandsWords(error: unknown): unknown {
  if (!(error instanceof OutsideFailure)) return error;
  const [first = '', ...others] = error.message.split('\n');
  if (error.type === 'BudgetSpent')
    return new UserError(
      first.replace(/; raise .*/, '; give the same command with a higher --max-dollars: what was paid for is kept'),
    );
  const fields = first.includes('analyst.')
    ? ['analyst.* here: --url, --model, --api-key-env, or fields of --config']
    : [];
  return new UserError(first, [
    ...others,
    ...fields,
    ...(error.retryable ? ['the same command goes on: every reply that came is kept'] : []),
  ]);
}
