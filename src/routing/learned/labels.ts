/**
 * The base model as classifier (step 4 of the method): it is shown the adapters that similar train tasks needed, each under a label of one
 * token, and the probabilities of the labels say which of them a conversation gets. Invariants: the same arithmetic as
 * trainer/fit_router/labels.py; where it names no label, the conversation is left to the base model.
 */
import { z } from 'zod';
import type { Message } from '../../domain/messages';
import { policyNames } from '../../domain/policies';
import type { LikelyToken } from '../../policy/wire';
import type { Similar } from './retrieval';

/** A train task that some option solved, and what that took: the parts of the smallest one. */
const exampleSchema = z.object({ text: z.string(), needed: z.array(z.string()).min(1) });
export type Example = z.output<typeof exampleSchema>;

export const labelsSchema = z.object({
  form: z.literal('labels'),
  options: z.array(z.string()).min(1),
  /** What there is a label for: base first. */
  names: z.array(z.string()).min(2),
  definitions: z.record(z.string(), z.string()),
  examples: z.array(exampleSchema),
  /** Of the examples, where an endpoint embeds them. */
  vectors: z.array(z.array(z.number())).optional(),
  neighbours: z.number().int().positive(),
  temperature: z.number().positive(),
  prior: z.array(z.number()),
  nucleus: z.number(),
});
export type LabelsModel = z.output<typeof labelsSchema>;

const { base } = policyNames;
const DIGITS = 1e9;
const TIE = 1e-9;

/** By name the log-prob of its label, null of one that was no candidate. */
export type Heard = (number | null)[];

interface Asking {
  text: string;
  names: readonly string[];
  definitions: Readonly<Record<string, string>>;
  examples: readonly Example[];
  neighbours: number;
  similar: Similar;
  likeliest: (messages: Message[]) => Promise<LikelyToken[]>;
}

/** Examples of the very text do not count: its outcome is what is asked for. */
export async function hear({ text, similar, examples, likeliest, ...asking }: Asking): Promise<Heard> {
  const { names, definitions, neighbours } = asking;
  const similarities = await similar(text);
  const nearest = examples
    .map((example, n) => ({ ...example, similarity: similarities[n]! }))
    .filter((example) => example.text !== text)
    .sort((a, b) => b.similarity - a.similarity)
    .slice(0, neighbours);
  const shown = names.flatMap((name) => {
    const example = nearest.find(({ needed }) => needed.includes(name));
    return example || name === base ? [{ name, example }] : [];
  });
  const lines = shown.map(({ name, example }, n) => {
    const what = name === base ? 'none of these' : `${name}: ${definitions[name] ?? name}`;
    return `${label(n)}: ${what}${example ? ` For example: ${example.text}` : ''}`;
  });
  const question = [...lines, `Request: ${text}`, 'Which skill does the request need? Answer with its label.'];
  const tokens = await likeliest([{ role: 'user', content: question.join('\n') }]);
  const logprobs = shown.map((_, n) => tokens.find(({ token }) => token.trim() === label(n))?.logprob);
  if (logprobs.every((one) => one === undefined)) return names.map(() => null);
  // One that is not among the likeliest is at most as likely as the last of these.
  const least = Math.min(...tokens.map(({ logprob }) => logprob));
  return names.map((name) => {
    const n = shown.findIndex((one) => one.name === name);
    return n < 0 ? null : (logprobs[n] ?? least);
  });
}

const label = (n: number): string => String.fromCharCode('A'.charCodeAt(0) + n);
/** So many labels there are. */
export const MOST_NAMES = 26;

/** By name its calibrated probability, and the option: base where no label was heard. */
export function choice(model: LabelsModel, heard: Heard): { option: string; probabilities: Record<string, number> } {
  const { names, options, temperature, prior, nucleus } = model;
  if (heard.every((one) => one === null)) return { option: base, probabilities: {} };
  const scores = heard.map((one, n) => (one === null ? -Infinity : one / temperature + (prior[n] ?? NaN)));
  const most = Math.max(...scores);
  const total = scores.reduce((sum, score) => sum + Math.exp(score - most), 0);
  const likely = names
    .map((name, n) => ({ name, n, probability: Math.exp(scores[n]! - most) / total }))
    .sort((a, b) => rounded(b.probability) - rounded(a.probability) || a.n - b.n);
  if (!likely.every(({ probability }) => Number.isFinite(probability)))
    throw new Error('router option "base": the parameters do not match the labels');
  const probabilities = Object.fromEntries(likely.map(({ name, probability }) => [name, probability]));
  if (likely[0]!.name === base) return { option: base, probabilities };
  const inside: string[] = [];
  let before = 0;
  for (const { name, probability } of likely) {
    if (before < nucleus - TIE && name !== base) inside.push(name);
    before += probability;
  }
  for (let count = inside.length; count > 0; count--) {
    const option = options.find((one) => isSumOf(one, inside.slice(0, count)));
    if (option) return { option, probabilities };
  }
  throw new Error(`no option is ${inside[0]} alone; fit the router again`);
}

const rounded = (value: number): number => Math.round(value * DIGITS);

const isSumOf = (option: string, parts: readonly string[]): boolean => {
  const own = option.split('+');
  return own.length === parts.length && parts.every((part) => own.includes(part));
};

/** The parts of the first option, and so of the smallest, that solved the task in most trials; undefined if none did. */
export function neededOf(options: readonly string[], outcomes: Readonly<Record<string, number[]>>) {
  const solved = options.find((option) => {
    const trials = outcomes[option] ?? [];
    return trials.reduce((sum, one) => sum + one, 0) / trials.length > 0.5;
  });
  return solved?.split('+');
}
