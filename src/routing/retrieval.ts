/**
 * Which train tasks are most similar to a text: by cosine, of the words that they hold or of what an endpoint embeds them as. Invariant: of
 * equally similar ones the first; cosines are compared to nine digits.
 */
import { z } from 'zod';
import { checkVariable, apiKeyEnvField, urlField } from '../domain/endpoints';

export const embeddingsSchema = z.strictObject({
  url: urlField.describe('URL of an OpenAI-compatible endpoint, without /v1/embeddings.'),
  model: z.string().min(1).describe('Name of the model at the endpoint.'),
  apiKeyEnv: apiKeyEnvField.describe('Variable with the API key, where one is needed.'),
});
export type Endpoint = z.output<typeof embeddingsSchema>;

/** Similarities to each of the texts that it was made of. */
export type Similar = (text: string) => Promise<number[]>;

const WORD = /[A-Za-z0-9_]+|[^ \t\r\nA-Za-z0-9_]/gu;
const DIGITS = 1e9;
/** Texts of one request to an endpoint. */
const TEXTS = 64;
const TIMEOUT_MS = 60_000;

type Vector = ReadonlyMap<string, number>;

/** TF-IDF over words. */
export function similarWords(texts: readonly string[]): Similar {
  const held = texts.map(wordsOf);
  const idf = (word: string): number => Math.log((1 + texts.length) / (1 + (holding.get(word) ?? 0))) + 1;
  const holding = new Map<string, number>();
  for (const words of held) for (const word of words) holding.set(word, (holding.get(word) ?? 0) + 1);
  const vector = (words: ReadonlySet<string>): Vector => new Map([...words].map((word) => [word, idf(word)]));
  const vectors = held.map(vector);
  return async (text) => {
    const own = vector(wordsOf(text));
    return vectors.map((one) => cosine(own, one));
  };
}

const wordsOf = (text: string): Set<string> => new Set(text.toLowerCase().match(WORD) ?? []);

/** By vectors that an endpoint gave for the texts. */
export const similarVectors =
  (vectors: readonly number[][], embed: (text: string) => Promise<number[]>): Similar =>
  async (text) => {
    const own = sparse(await embed(text));
    return vectors.map((one) => cosine(own, sparse(one)));
  };

const sparse = (values: readonly number[]): Vector => new Map(values.map((value, n) => [String(n), value]));

function cosine(a: Vector, b: Vector): number {
  let shared = 0;
  for (const [key, value] of a) shared += value * (b.get(key) ?? 0);
  const length = (of: Vector): number => Math.sqrt([...of.values()].reduce((sum, value) => sum + value ** 2, 0)) || 1;
  return Math.floor((shared / (length(a) * length(b))) * DIGITS + 0.5) / DIGITS;
}

const answerSchema = z.object({
  data: z.array(z.object({ index: z.number().int(), embedding: z.array(z.number()).min(1) })),
});

/** Asks the endpoint. Throws where it does not answer with one vector a text. */
export async function embed(endpoint: Endpoint, texts: readonly string[], signal: AbortSignal): Promise<number[][]> {
  const vectors: number[][] = [];
  for (let begin = 0; begin < texts.length; begin += TEXTS)
    vectors.push(...(await ask(endpoint, texts.slice(begin, begin + TEXTS), signal)));
  return vectors;
}

async function ask({ url, model, apiKeyEnv }: Endpoint, input: readonly string[], signal: AbortSignal) {
  if (apiKeyEnv !== undefined) checkVariable('router.embeddings.apiKeyEnv', apiKeyEnv);
  const key = apiKeyEnv === undefined ? undefined : process.env[apiKeyEnv];
  if (apiKeyEnv !== undefined && !key) throw new Error(`router.embeddings.apiKeyEnv: ${apiKeyEnv} is not set; set it`);
  const response = await fetch(`${url.replace(/\/+$/, '')}/v1/embeddings`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...(key && { authorization: `Bearer ${key}` }) },
    body: JSON.stringify({ model, input }),
    signal: AbortSignal.any([signal, AbortSignal.timeout(TIMEOUT_MS)]),
  });
  if (!response.ok) {
    const said = (await response.text()).slice(0, 200);
    throw new Error(`router.embeddings.url ${url} answered ${response.status}: ${said}; look at the endpoint`);
  }
  const { data } = answerSchema.parse(await response.json());
  if (data.length !== input.length)
    throw new Error(`router.embeddings.url ${url} gave ${data.length} vectors for ${input.length} texts`);
  return data.sort((a, b) => a.index - b.index).map(({ embedding }) => embedding);
}
