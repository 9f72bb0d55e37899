/**
 * `campaign analyse`: from files of conversations to pages. Files and fields are checked, and the cost is told, before anything is asked; nothing
 * is asked without a yes; what was paid for is kept, so that the same command goes on.
 */
import { dirname, resolve } from 'node:path';
import { z } from 'zod';
import type { AnalystKind } from '../../analyst/analyst';
import { openStore } from '../../store/open-store';
import { indexed } from '../../store/campaign-index';
import { type SelectionRule, selectionRuleSchema } from '../../domain/campaign';
import { type Budget, costOf, type LanguageModelSpec } from '../../domain/endpoints';
import { OutsideFailure } from '../../domain/failures';
import { type KindSpec, specSchemaOf } from '../../domain/kinds';
import { keyOf } from '../../llm/client';
import { openLedger } from '../../llm/ledger';
import { settleSpending, spentOf } from '../../llm/spending';
import { registry } from '../../registry';
import { dollarsText, wholeNumber } from '../../report/format';
import { note, print } from '../../terminal';
import { loadConversations } from './conversations';
import { checkClaim, claimOf, nameOf, placeOf, takeName, writeResult } from './folder';
import { analysisText } from './text';
import { type AnalysisResult, finishedSteps, openAnalysis, reasonHere, runSteps, showProgress } from './steps';
import { buildAnalysis } from './result';
import { changePaths } from '../campaign-file';
import { InputError, invalidOption, UserError } from '../errors';
import { parseFields, readInput } from '../input';
import { type CommonOptions, confirmed, homeOf } from '../options';
import { makeHome } from '../project';
import { onInterrupt } from '../run/supervisor';

export interface AnalyseOptions extends SpecOptions, CommonOptions {
  passes?: number;
  votes?: number;
  name?: string;
  scorer?: string;
  maxDollars?: number;
}

/** Everything but the result goes to stderr. */

/** @returns the exit code. */
export async function analyse(files: readonly string[], options: AnalyseOptions): Promise<number> {
  const interruption = onInterrupt({ onFirst: () => undefined, onSecond: () => undefined });
  const { signal } = interruption;
  try {
    const plan = await prepare(files, options);
    for (const line of estimateLines(plan)) note(line);
    if (!plan.isDone && !options.yes && !(await confirmed('go on', signal))) {
      note('nothing was asked, and nothing is spent');
      return 1;
    }
    await takeName(plan);
    print(await write(plan, await run(plan, signal), options));
    return 0;
  } catch (error) {
    if (!signal.aborted) throw inCommandsWords(error);
    note('stopped; every reply that came is kept: the same command goes on from there');
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
  const kind = registry.analysts.find(({ languageModel }) => languageModel !== undefined);
  if (!kind) throw new Error('no kind of analyst asks a language model');
  const spec = analystSpec(options, kind);
  const budget: Budget = options.maxDollars === undefined ? {} : { dollars: options.maxDollars };
  if (budget.dollars !== undefined && !spec.price)
    throw new InputError({ code: 'missing_field', field: '--price', fix: '--max-dollars needs --price INPUT,OUTPUT' });
  const name = nameOf(home, files, options.name);
  const analyst = await kind.open(spec, undefined);
  const conversations = await loadConversations({ files, scorer: options.scorer, name, analyst, rule });
  const { total, failed, passed, tokens } = conversations.counts;
  note(
    `${wholeNumber(total)} conversations: ${wholeNumber(failed)} failed, ${wholeNumber(passed)} passed; about ${wholeNumber(tokens)} tokens`,
  );
  for (const one of conversations.notes) note(`note: ${one}`);
  await makeHome(home.root);
  const store = await openStore(home.root);
  const claiming = { place: placeOf(home, name), claim: claimOf(conversations, files), store };
  await checkClaim(claiming);
  const analysis = await openAnalysis(store, analyst, conversations);

  const finished = await finishedSteps(analysis, rule);
  const { candidates } = finished;
  const passes = candidates?.length === 0 ? 0 : rule.passes - finished.passes;
  const isDone = candidates !== undefined && passes === 0;
  if (!isDone) keyOf('--api-key-env', spec);
  const planned = analyst.estimate?.({ ...conversations, rule, candidates });
  const sum = (field: 'requests' | 'promptTokens' | 'completionTokens') =>
    planned ? (candidates ? 0 : planned.discovery[field]) + passes * planned.pass[field] : 0;
  const left = {
    requests: sum('requests'),
    promptTokens: sum('promptTokens'),
    completionTokens: sum('completionTokens'),
  };
  const made = { analyst, analysis, finished, isDone, left };
  return { files: [...files], name, conversations, spec, rule, budget, ...claiming, ...made, store };
}

/** Votes that are not given are as many of the passes as the method asks for, 8 of 10. */
function ruleOf(given: Pick<AnalyseOptions, 'passes' | 'votes'>): SelectionRule {
  const usual = selectionRuleSchema.parse({});
  const { passes = usual.passes } = given;
  const { votes = Math.ceil((usual.votes * passes) / usual.passes) } = given;
  if (votes > passes) throw invalidOption('--votes', `${votes}`, `lower it to --passes (${passes}), or raise --passes`);
  return { ...usual, passes, votes };
}

/** How much it will take, what that depends on, and what leaves the machine. */
function estimateLines({ spec, finished: { candidates, passes }, left }: Plan): string[] {
  const { dollars } = costOf({ ...left, cachedTokens: 0 }, spec.price);
  // To two digits: more would pretend.
  const rounded = (count: number) => wholeNumber(Number(count.toPrecision(2)));
  const done = [
    candidates && `discovery (${candidates.length} candidates)`,
    passes > 0 ? `${passes} passes` : undefined,
  ].filter((step) => step !== undefined);
  return [
    `estimate: about ${wholeNumber(left.requests)} requests to ${spec.model}, ${rounded(left.promptTokens)} tokens in, ${rounded(left.completionTokens)} out` +
      (dollars === undefined ? '' : `, ${dollarsText(dollars)}`),
    '  More if the model reasons at length or answers have to be repaired; less where the endpoint caches prompts.' +
      (spec.price ? '' : ' Dollars with --price INPUT,OUTPUT.'),
    ...(left.requests > 0
      ? [
          `  Sent to ${spec.url}: policy, tools and conversations, of each message its first ${wholeNumber(spec.messageChars)} ` +
            `characters and of a call's arguments ${wholeNumber(spec.argumentChars)}.`,
        ]
      : []),
    ...(done.length > 0 ? [`  Finished already and not asked for again: ${done.join(', ')}.`] : []),
  ];
}

async function run({ name, budget, store, analysis, rule }: Plan, signal: AbortSignal): Promise<AnalysisResult> {
  const progress = showProgress(rule.passes, process.stderr);
  const ledger = openLedger({ store, campaign: name, budget, role: 'analyst', onText: progress.received });
  try {
    // The index keeps the replies when a campaign that shares them is deleted.
    return await indexed(store.files, name, () =>
      runSteps({ analysis, rule, ledger: progress.counting(ledger), progress, signal }),
    );
  } finally {
    progress.close();
    await settleSpending(store);
  }
}

/** @returns what is printed. */
async function write(plan: Plan, result: AnalysisResult, { json }: AnalyseOptions): Promise<string> {
  const { place, name, rule, conversations, spec, store } = plan;
  const { kind, version } = plan.analyst.identity;
  const spent = await spentOf({ store, campaign: name });
  const analysis = await buildAnalysis({ ...plan, analyst: { kind, version, model: spec.model }, result, spent });
  const { passes, candidates } = result;
  await writeResult({ place, analysis, candidates, passes, ids: conversations.ids });
  if (json) return JSON.stringify(analysis, null, 2);
  const usual = selectionRuleSchema.parse({});
  const isUsual = passes.length === usual.passes && rule.votes === usual.votes;
  const goOn = [
    '',
    'a campaign goes on from here with',
    `  analyst: { kind: given, capabilities: ${JSON.stringify(place.capabilities)} }`,
    ...(isUsual ? [] : [`  selection: { passes: ${passes.length}, votes: ${rule.votes} }`]),
  ];
  return [analysisText(analysis, process.stdout.columns), '', place.html, ...(candidates.length > 0 ? goOn : [])].join(
    '\n',
  );
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

export interface SpecOptions {
  config?: string;
  url?: string;
  model?: string;
  apiKeyEnv?: string;
  price?: { input: number; output: number };
}

export type AnalystSpec = KindSpec & LanguageModelSpec & { messageChars: number; argumentChars: number };

type Fields = Record<string, unknown>;

/** More than a campaign shows: the conversations are few, and a label hangs on the step where a failure begins. */
const SHOWN: Fields = { messageChars: 1000, argumentChars: 400 };

const flags = {
  url: '--url URL (of any OpenAI-compatible endpoint, such as http://127.0.0.1:8000/v1)',
  model: '--model NAME',
};

/** @throws UserError */
export function analystSpec({ config, ...options }: SpecOptions, kind: AnalystKind): AnalystSpec {
  const fields: Fields = {
    kind: kind.kind,
    ...SHOWN,
    ...(config !== undefined && fromFile(config, kind)),
    ...fromFlags(options),
  };
  for (const [field, flag] of Object.entries(flags))
    if (fields[field] === undefined)
      throw new InputError({
        code: 'missing_field',
        field,
        fix: `give ${flag}, or ${field} in a file with --config`,
      });
  const { data, problems } = parseFields(specSchemaOf([kind]), fields);
  if (problems) {
    const [first, ...others] = problems.map((one) => ({
      ...one,
      ...(config !== undefined && { where: `${config}:` }),
    }));
    throw new InputError(first!, ...others);
  }
  // The kind's options hold those of every language model.
  return data as unknown as AnalystSpec;
}

const fromFlags = ({ url, model, apiKeyEnv, price }: SpecOptions): Fields =>
  Object.fromEntries(Object.entries({ url, model, apiKeyEnv, price }).filter(([, value]) => value !== undefined));

/** A file with the analyst's fields, or a campaign file, of which `analyst` counts. Its paths are relative to it. */
function fromFile(file: string, kind: AnalystKind): Fields {
  const fix = "name a YAML file with the analyst's fields (url, model, ...), or a campaign file";
  const schema = z.looseObject({ analyst: z.record(z.string(), z.unknown()).optional() });
  const value = readInput({ file, named: `--config ${file}`, schema, fix });
  const fields: Fields = value.analyst ?? value;
  const named = fields['kind'] ?? kind.kind;
  if (named !== kind.kind)
    throw new InputError({
      ...{ code: 'invalid_value', field: 'kind', value: JSON.stringify(named), where: `${file}:` },
      fix: `this command asks a language model: \`kind: ${kind.kind}\``,
    });
  return changePaths({ ...fields, kind: kind.kind }, kind, (path) => resolve(dirname(file), path));
}
