/**
 * `campaign analyse`: from files of conversations to a page. Without a language model the conversations are counted and compared. Before one is
 * asked, files and fields are checked, the cost is shown and the user has agreed; paid replies are kept, so that the same command continues.
 */
import { z } from 'zod';
import { openStore } from '../../store/open-store';
import { indexed } from '../../store/campaign-index';
import { type SelectionRule, selectionRuleSchema } from '../../domain/campaign';
import { type LanguageModelSpec, tokensOf } from '../../domain/endpoints';
import { OutsideFailure } from '../../domain/failures';
import { kindOf, type KindSpec, specSchemaOf } from '../../domain/kinds';
import { compactOne } from '../../domain/transcript';
import { keyOf } from '../../llm/client';
import { openLedger } from '../../llm/ledger';
import { settleSpending, spentOf } from '../../llm/spending';
import { registry } from '../../registry';
import { wholeNumber } from '../../report/format';
import { columnsOf, note, print } from '../../terminal';
import { analysisRequests, planOf } from '../check/language-models';
import { requestLines } from '../check/text';
import { InputError, UserError } from '../errors';
import { checkFields, type Fields, InputFile } from '../input';
import { type CommonOptions, confirmed, homeOf } from '../options';
import { type Home, makeHome } from '../project';
import { onInterrupt } from '../services/supervisor';
import { buildAnalysis, type Read } from './build';
import { type Conversations, loadConversations } from './conversations';
import { hasFindings, nameOf, writeAnalysis } from './folder';
import type { Analysis } from './result';
import { openAnalysis, reasonHere, runSteps } from './steps';
import { analysisText } from './text';

export interface AnalyseOptions extends SpecOptions, CommonOptions {
  passes?: number;
  name?: string;
  scorer?: string;
  maxDollars?: number;
}

/** Everything but the result goes to stderr. @returns the exit code. */
export async function analyse(files: readonly string[], options: AnalyseOptions): Promise<number> {
  const { signal, dispose } = onInterrupt({ onFirst: () => undefined, onSecond: () => undefined });
  try {
    const home = homeOf(options);
    const name = nameOf(home, files, options.name);
    const model = ASKING.some((option) => options[option] !== undefined) ? await openModel(options) : undefined;
    const isFound = hasFindings(home, { name, files, asks: model !== undefined });
    const conversations = await loadConversations({ files, scorer: options.scorer, name, model });
    await makeHome(home.root);
    if (model) showPlan(model, conversations);
    if (model && !options.yes && !(await confirmed('continue', signal))) {
      note('aborted; no requests were sent');
      return 1;
    }
    // Comparisons are written first: they mark the folder, and stay if no reply comes. Earlier findings stay until there are new ones.
    const counted = { name, files: [...files], conversations };
    let analysis = await buildAnalysis(counted);
    let written = isFound ? undefined : await writeAnalysis(home, analysis);
    if (model) {
      analysis = await buildAnalysis({
        ...counted,
        read: await readWith(model, { home, name, conversations, signal }),
      });
      written = await writeAnalysis(home, analysis);
    }
    print(options.json ? JSON.stringify(analysis, null, 2) : resultText(analysis, written!));
    return 0;
  } catch (error) {
    if (!signal.aborted) throw inCommandsWords(error);
    note('stopped; all replies so far are kept: run the same command again to continue');
    return 130;
  } finally {
    dispose();
  }
}

const llm = kindOf(registry.analysts, { kind: 'llm' });

/** Without any of these options no language model is asked. */
const ASKING = ['url', 'model', 'config', 'apiKeyEnv', 'price', 'maxDollars', 'passes'] as const;

type Model = Awaited<ReturnType<typeof openModel>>;

async function openModel(options: AnalyseOptions) {
  const spec = analystSpec(options);
  const { maxDollars, passes } = options;
  keyOf('--api-key-env', spec);
  if (maxDollars !== undefined && !spec.price)
    throw new InputError({ code: 'missing_field', field: '--price', fix: '--max-dollars needs --price INPUT,OUTPUT' });
  return { spec, maxDollars, rule: ruleOf(passes), analyst: await llm.open(spec, undefined) };
}

const usual = selectionRuleSchema.parse({});

/** Returns the usual selection rule for another number of passes. It requires the same share of votes, 8 of 10, rounded up. */
function ruleOf(passes = usual.passes): SelectionRule {
  return { ...usual, passes, votes: Math.ceil((usual.votes * passes) / usual.passes) };
}

/** Shows what the requests will take, and what leaves the machine. */
function showPlan({ spec, rule: selection }: Model, { counts, notes, rollouts }: Conversations): void {
  const { total, failed, passed, tokens } = counts;
  const { messageChars, argumentChars } = spec;
  note(
    `${wholeNumber(total)} conversations: ${wholeNumber(failed)} failed, ${wholeNumber(passed)} passed; about ${wholeNumber(tokens)} tokens`,
  );
  for (const one of notes) note(`note: ${one}`);
  const lengths = { message: messageChars, arguments: argumentChars };
  const texts = rollouts.map((rollout) => compactOne({ rollout, id: 'r1', lengths }));
  const shown = texts.reduce((sum, text) => sum + tokensOf(text.length), 0);
  const requests = analysisRequests({
    campaign: { analyst: spec, selection, plugins: [] },
    rollouts: total,
    shown: { low: shown, high: shown },
  });
  note('estimate; replies that are stored are not paid for again:');
  for (const line of requestLines(planOf(requests))) note(`  ${line}`);
  note(
    `  Sent to ${spec.url}: policy, tools and conversations, of each message its first ${wholeNumber(messageChars)} ` +
      `characters and of a call's arguments ${wholeNumber(argumentChars)}.`,
  );
}

async function readWith(
  { spec, rule, analyst, maxDollars }: Model,
  o: { home: Home; name: string; conversations: Conversations; signal: AbortSignal },
): Promise<Read> {
  const { name, signal } = o;
  const store = await openStore(o.home.root);
  const analysis = await openAnalysis(store, analyst, o.conversations);
  const budget = maxDollars === undefined ? {} : { dollars: maxDollars };
  const ledger = openLedger({ store, campaign: name, budget, role: 'analyst' });
  const steps = () => runSteps({ analysis, rule, ledger, signal });
  // The index keeps the replies when a campaign that shares them is deleted.
  const result = await indexed(store.files, name, steps).finally(() => settleSpending(store));
  const { kind, version } = analyst.identity;
  const spent = await spentOf({ store, campaign: name });
  return { analysis, rule, result, budget, spent, analyst: { kind, version, model: spec.model } };
}

function resultText(analysis: Analysis, { page, capabilities }: Awaited<ReturnType<typeof writeAnalysis>>): string {
  const goOn = [
    '',
    'to train on these capabilities, put this line into a campaign file:',
    `  analyst: { kind: given, capabilities: ${JSON.stringify(capabilities)} }`,
  ];
  return [analysisText(analysis, columnsOf()), '', page, ...(capabilities === undefined ? [] : goOn)].join('\n');
}

/** Failures speak of a campaign file's fields; here they are flags. */
function inCommandsWords(error: unknown): unknown {
  if (!(error instanceof OutsideFailure)) return error;
  const [first = '', ...others] = reasonHere(error).split('\n');
  return new UserError(error.type === 'BadInput' ? 'bad_input' : 'failed', 'analysis', first, [
    ...others,
    ...(first.includes('analyst.') ? ['analyst.* here: --url, --model, --api-key-env, or fields of --config'] : []),
    ...(error.retryable ? ['all replies so far are kept: run the same command again to continue'] : []),
  ]);
}

interface SpecOptions {
  config?: string;
  url?: string;
  model?: string;
  apiKeyEnv?: string;
  price?: { input: number; output: number };
}

type AnalystSpec = KindSpec & LanguageModelSpec & { messageChars: number; argumentChars: number };

/** More than a campaign shows: the conversations are few, and a label hangs on the step where a failure begins. */
const SHOWN: Fields = { messageChars: 1000, argumentChars: 400 };

/** The options stand over the fields of a file. @throws UserError */
function analystSpec({ config, url, model, apiKeyEnv, price }: SpecOptions): AnalystSpec {
  const given = Object.entries({ url, model, apiKeyEnv, price }).filter(([, value]) => value !== undefined);
  const file = config === undefined ? {} : fromFile(config);
  const fields: Fields = { kind: llm.kind, ...SHOWN, ...file, ...Object.fromEntries(given) };
  for (const field of ['url', 'model'])
    if (fields[field] === undefined) {
      const fix = `give --${field} of an OpenAI-compatible endpoint, or ${field} in a file with --config`;
      throw new InputError({ code: 'missing_field', field, fix });
    }
  const where = config !== undefined && { where: `${config}:` };
  // The kind's options hold those of every language model.
  return checkFields(specSchemaOf([llm]), fields, (problem) => ({ ...problem, ...where })) as unknown as AnalystSpec;
}

/** A file with the analyst's fields, or a campaign file, of which `analyst` counts. */
function fromFile(file: string): Fields {
  const fix = "name a YAML file with the analyst's fields (url, model, ...), or a campaign file";
  const input = new InputFile(file, '--config', fix);
  const { analyst } = input.check(z.looseObject({ analyst: z.record(z.string(), z.unknown()).optional() }));
  return analyst ?? input.fields;
}
