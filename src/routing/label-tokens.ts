/**
 * Routes with the base model as classifier (step 4 of the method). Its prompt lists the adapters that similar train tasks needed, each under a label of one
 * token. A conversation gets the merged adapters of the nucleus of the likeliest labels. Texts are compared by the cosine of their TF-IDF vectors.
 * Invariants: the arithmetic is that of trainer/fit_router/labels.py; if the base model names no label, the base model plays; of equally similar texts the
 * first counts, with cosines compared to nine digits.
 */
import { z } from 'zod';
import { defineKind } from '../domain/kinds';
import { createLimit } from '../domain/concurrency';
import { getOrMake } from '../domain/maps';
import { countsOf, mean } from '../domain/statistics';
import type { Message } from '../domain/messages';
import { policyNames } from '../domain/policies';
import type { LikelyToken } from '../policy/wire';
import { checkOptions, fitWithPython, foldsField, textOf, TIE, type LabelAnswers } from './python-fit';
import type { ChooseInput, ChosenOption, FitInput, FittedRouter, RouterContext, RouterKind } from './router';

/** Numbers of similar train tasks that name the candidates; the fit chooses one. */
const NEIGHBOURS = [4, 16];
const CONCURRENT_QUESTIONS = 32;
const MOST_NAMES = 26;
const DIGITS = 1e9;
const { base } = policyNames;

/** A train task that some option solved, and the parts of the smallest such option. */
const exampleSchema = z.object({ text: z.string(), needed: z.array(z.string()).min(1) });
type Example = z.output<typeof exampleSchema>;

const modelSchema = z.object({
  form: z.literal('labels'),
  options: z.array(z.string()).min(1),
  names: z.array(z.string()).min(2),
  neighbours: z.number().int().positive(),
  temperature: z.number().positive(),
  prior: z.array(z.number()),
  nucleus: z.number(),
  definitions: z.record(z.string(), z.string()),
  examples: z.array(exampleSchema),
});
export type LabelsModel = z.output<typeof modelSchema>;

type LabelLogprobs = (number | null)[];

type Choose = (text: string, signal: AbortSignal) => Promise<ChosenOption>;

export const labelTokens: RouterKind = defineKind({
  kind: 'label_tokens',
  version: '1',
  options: { folds: foldsField },
  open({ folds }, identity, context: RouterContext) {
    const choosers = new WeakMap<FittedRouter, Choose>();
    return {
      identity,
      async fit(input) {
        const { labels, retrieval } = await askOfAllTasks(input, context);
        const fit = await fitWithPython({ input, options: { folds }, context, labels });
        if (fit.constant !== undefined) return fit;
        return { ...fit, parameters: modelSchema.parse({ ...(fit.parameters as object), ...retrieval }) };
      },
      async choose({ fitted, messages, signal }: ChooseInput): Promise<ChosenOption> {
        const choose = getOrMake(choosers, fitted, () => createChoose(fitted, context));
        return choose(textOf(messages), signal);
      },
    };
  },
});

/** Asks the base model about each train task, once for each number of neighbours. */
async function askOfAllTasks(
  input: FitInput,
  context: RouterContext,
): Promise<{ labels: LabelAnswers; retrieval: Pick<LabelsModel, 'definitions' | 'examples'> }> {
  const { definitions = {}, progress, signal } = input;
  const options = input.options.map(({ name }) => name);
  const names = options.filter((name) => !name.includes('+'));
  if (names.length > MOST_NAMES)
    throw new Error(`router.kind label_tokens: ${names.length} options and ${MOST_NAMES} labels; choose another kind`);
  const tasks = input.tasks.map(({ messages, outcomes }) => ({ text: textOf(messages), outcomes }));
  const examples = tasks.flatMap(({ text, outcomes }): Example[] => {
    const needed = neededParts(options, outcomes);
    return needed?.every((name) => names.includes(name)) ? [{ text, needed }] : [];
  });
  const similar = similarWords(examples.map(({ text }) => text));
  const likeliest = askBase(context, input.options, signal);
  const limit = createLimit(CONCURRENT_QUESTIONS);
  let done = 0;
  const ask = (text: string, neighbours: number) =>
    limit(async () => {
      signal.throwIfAborted();
      const logprobs = await labelLogprobs({ text, names, definitions, examples, neighbours, similar, likeliest });
      progress(++done, tasks.length * NEIGHBOURS.length);
      return logprobs;
    });
  const logprobs = await Promise.all(
    tasks.map(({ text }) => Promise.all(NEIGHBOURS.map((neighbours) => ask(text, neighbours)))),
  );
  return { labels: { names, neighbours: NEIGHBOURS, logprobs }, retrieval: { definitions, examples } };
}

function createChoose(fitted: FittedRouter, context: RouterContext): Choose {
  const model = modelSchema.parse(fitted.parameters);
  checkOptions(model.options, fitted.options);
  const { names, definitions, examples, neighbours } = model;
  const similar = similarWords(examples.map(({ text }) => text));
  return async (text, signal) => {
    const likeliest = askBase(context, fitted.options, signal);
    const logprobs = await labelLogprobs({ text, names, definitions, examples, neighbours, similar, likeliest });
    return chooseByLabels(model, logprobs);
  };
}

type AskBase = (messages: Message[]) => Promise<LikelyToken[]>;

function askBase({ client }: RouterContext, options: FittedRouter['options'], signal: AbortSignal): AskBase {
  const policy = options.find(({ name }) => name === base)?.policy;
  if (!policy) throw new Error(`router options must include "${base}", the base model`);
  return (messages) => client.likeliest({ policy, messages, signal });
}

interface Question {
  text: string;
  names: readonly string[];
  definitions: Readonly<Record<string, string>>;
  examples: readonly Example[];
  neighbours: number;
  similar: Similar;
  likeliest: AskBase;
}

/** Asks the base model about one text. Examples with the same text are left out, because they hold the answer. */
async function labelLogprobs(question: Question): Promise<LabelLogprobs> {
  const { text, names, definitions, examples, neighbours, similar, likeliest } = question;
  const similarities = similar(text);
  const nearest = examples
    .map((example, n) => ({ ...example, similarity: similarities[n]! }))
    .filter((example) => example.text !== text)
    .sort((a, b) => b.similarity - a.similarity)
    .slice(0, neighbours);
  const candidates = names.flatMap((name) => {
    const example = nearest.find(({ needed }) => needed.includes(name));
    return example || name === base ? [{ name, example }] : [];
  });
  const lines = candidates.map(({ name, example }, n) => {
    const what = name === base ? 'none of these' : `${name}: ${definitions[name] ?? name}`;
    return `${label(n)}: ${what}${example ? ` For example: ${example.text}` : ''}`;
  });
  const prompt = [...lines, `Request: ${text}`, 'Which skill does the request need? Answer with its label.'];
  const tokens = await likeliest([{ role: 'user', content: prompt.join('\n') }]);
  const logprobs = candidates.map((_, n) => tokens.find(({ token }) => token.trim() === label(n))?.logprob);
  if (logprobs.every((logprob) => logprob === undefined)) return names.map(() => null);
  // A label that is not among the likeliest tokens is at most as likely as the last of these.
  const least = Math.min(...tokens.map(({ logprob }) => logprob));
  return names.map((name) => {
    const n = candidates.findIndex((candidate) => candidate.name === name);
    return n < 0 ? null : (logprobs[n] ?? least);
  });
}

const label = (n: number): string => String.fromCharCode('A'.charCodeAt(0) + n);

/** Returns the option and the calibrated probability of each name; base if no label was among the likeliest tokens. */
export function chooseByLabels(model: LabelsModel, logprobs: LabelLogprobs): ChosenOption {
  const { names, options, temperature, prior, nucleus } = model;
  if (logprobs.every((logprob) => logprob === null)) return { chosen: base, probabilities: {} };
  const scores = logprobs.map((logprob, n) =>
    logprob === null ? -Infinity : logprob / temperature + (prior[n] ?? NaN),
  );
  const most = Math.max(...scores);
  const total = scores.reduce((sum, score) => sum + Math.exp(score - most), 0);
  const ranked = names
    .map((name, n) => ({ name, n, probability: Math.exp(scores[n]! - most) / total }))
    .sort((a, b) => rounded(b.probability) - rounded(a.probability) || a.n - b.n);
  if (!ranked.every(({ probability }) => Number.isFinite(probability)))
    throw new Error(`router option "${base}": the parameters do not match the labels`);
  const probabilities = Object.fromEntries(ranked.map(({ name, probability }) => [name, probability]));
  if (ranked[0]!.name === base) return { chosen: base, probabilities };
  const inside: string[] = [];
  let before = 0;
  for (const { name, probability } of ranked) {
    if (before < nucleus - TIE && name !== base) inside.push(name);
    before += probability;
  }
  for (let count = inside.length; count > 0; count--) {
    const chosen = options.find((one) => isSumOf(one, inside.slice(0, count)));
    if (chosen) return { chosen, probabilities };
  }
  throw new Error(`no option is ${inside[0]} alone; fit the router again`);
}

const rounded = (value: number): number => Math.round(value * DIGITS);

function isSumOf(option: string, parts: readonly string[]): boolean {
  const own = option.split('+');
  return own.length === parts.length && parts.every((part) => own.includes(part));
}

/** Returns the parts of the first, and so smallest, option that solved the task in most trials; undefined if none did. */
function neededParts(options: readonly string[], outcomes: Readonly<Record<string, number[]>>) {
  const solved = options.find((option) => outcomes[option]?.length && mean(outcomes[option]) > 0.5);
  return solved?.split('+');
}

type Similar = (text: string) => number[];

const WORD = /[A-Za-z0-9_]+|[^ \t\r\nA-Za-z0-9_]/gu;

type Vector = ReadonlyMap<string, number>;

function similarWords(texts: readonly string[]): Similar {
  const held = texts.map(wordsOf);
  const idf = (word: string): number => Math.log((1 + texts.length) / (1 + (holding.get(word) ?? 0))) + 1;
  const holding = countsOf(held.flatMap((words) => [...words]));
  const vector = (words: ReadonlySet<string>): Vector => new Map([...words].map((word) => [word, idf(word)]));
  const vectors = held.map(vector);
  return (text) => {
    const own = vector(wordsOf(text));
    return vectors.map((one) => cosine(own, one));
  };
}

const wordsOf = (text: string): Set<string> => new Set(text.toLowerCase().match(WORD) ?? []);

function cosine(a: Vector, b: Vector): number {
  let shared = 0;
  for (const [key, value] of a) shared += value * (b.get(key) ?? 0);
  const length = (of: Vector): number => Math.sqrt([...of.values()].reduce((sum, value) => sum + value ** 2, 0)) || 1;
  return Math.floor((shared / (length(a) * length(b))) * DIGITS + 0.5) / DIGITS;
}
