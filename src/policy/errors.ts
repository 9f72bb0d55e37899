/** The one mapping from what the policy server, or the way to it, does to failure types. */
import { errors } from 'undici';
import { z } from 'zod';
import { OutsideFailure, reasonOf } from '../domain/failures';

/** vLLM tells it in words only; the last ones where the prompt just fills the context. */
const CONTEXT_LENGTH = /maximum context length|context_length_exceeded|max_tokens must be at least 1, got/i;
const MAX_TEXT = 500;

const errorSchema = z.object({ error: z.object({ message: z.string(), code: z.unknown().optional() }) });

/** An answer with a status other than 2xx; OpenAI's shape where it has it. */
export function refusal(answer: { url: string; path: string; status: number; text: string }): OutsideFailure {
  const { url, path, status, text } = answer;
  const { message: said, code } = errorOf(text);
  const message = `policy server ${url}: ${path} answers ${status} ${said}`;
  if (status === 401 || status === 403)
    return new OutsideFailure('PolicyServerWrong', `${message}; set POLICY_SERVER_API_KEY to its key`);
  if (status === 404 && path === '/v1/models') return noPolicyServer({ url, text });
  if (status >= 500) return new OutsideFailure('PolicyServerError', message);
  if (status === 429) return new OutsideFailure('PolicyServerBusy', message);
  if (status === 404 && path.endsWith('/completions')) return new OutsideFailure('PolicyNotLoaded', message);
  if (code === 'context_length_exceeded' || CONTEXT_LENGTH.test(said)) {
    return new OutsideFailure('ContextLengthExceeded', message);
  }
  return new OutsideFailure('PolicyRequestRejected', message);
}

function errorOf(text: string): { message: string; code?: unknown } {
  try {
    return errorSchema.parse(JSON.parse(text)).error;
  } catch {
    return { message: text.slice(0, MAX_TEXT) };
  }
}

/** No answer, or not all of it. */
export function failedExchange({ url, error }: { url: string; error: unknown }): OutsideFailure {
  if (error instanceof OutsideFailure) return error;
  if (error instanceof errors.HeadersTimeoutError || error instanceof errors.BodyTimeoutError) {
    return new OutsideFailure('PolicyServerTimeout', `policy server ${url}: no answer in time`, error);
  }
  return new OutsideFailure('PolicyServerUnavailable', `policy server ${url}: ${reasonOf(error)}`, error);
}

export const invalidAnswer = ({ url, text }: { url: string; text: string }): OutsideFailure =>
  new OutsideFailure('PolicyAnswerInvalid', `policy server ${url}: the answer is no JSON: ${text.slice(0, MAX_TEXT)}`);

/** To /v1/models, which is asked first. */
export const noPolicyServer = ({ url, text }: { url: string; text: string }): OutsideFailure =>
  new OutsideFailure(
    'PolicyServerWrong',
    `policy server ${url}: no policy server answers there: /v1/models says ${text.slice(0, MAX_TEXT)}; ` +
      'name the address of vLLM itself, without /v1 (policyServer.url, POLICY_SERVER_URL)',
  );

/** Ranks that vLLM can be started for. */
const VLLM_RANKS = [1, 8, 16, 32, 64, 128, 256, 320, 512];

/** How vLLM has to be started to take adapters of this rank. */
export function rankFix(rank: number): string {
  const enough = VLLM_RANKS.find((one) => one >= rank);
  return enough === undefined
    ? `vLLM takes no rank above ${VLLM_RANKS.at(-1)}: lower training.lora.r`
    : `start vLLM with --max-lora-rank ${enough}`;
}

/** vLLM's words, and what mends it. */
const ADAPTER_FIXES: [RegExp, (...found: string[]) => string][] = [
  [/LoRA rank (\d+) is greater than max_lora_rank/, (rank) => rankFix(Number(rank))],
  [/No adapter found for/, () => 'the server has to see the home folder (CAMPAIGN_HOME) under the same path'],
  [/expected target modules in/, () => 'correct training.lora.targetModules, or --lora-target-modules of vLLM'],
  [/LoRA is not enabled/i, () => 'start vLLM with --enable-lora'],
  [
    / answers 40[45] /,
    () => 'start vLLM with VLLM_ALLOW_RUNTIME_LORA_UPDATING=True --enable-lora, or correct policyServer.url',
  ],
];

/** How vLLM begins what its engine says of an adapter; what else is a 500 is about the server. */
const OF_THE_ADAPTER = /Call to add_lora method failed(?!.*out of memory)/is;

/** Of a request to load an adapter. A server that has broken down is no refusal, and `works` asks it. */
export async function adapterRefusal(error: unknown, works: () => Promise<boolean>): Promise<unknown> {
  const { type, message } = error as OutsideFailure;
  const refused =
    type === 'PolicyRequestRejected' ||
    (type === 'PolicyServerError' && OF_THE_ADAPTER.test(message) && (await works()));
  if (!refused) return error;
  const fixes = ADAPTER_FIXES.flatMap(([words, fix]) => {
    const found = words.exec(message);
    return found ? [fix(...found.slice(1))] : [];
  });
  return new OutsideFailure('AdapterRefused', [message, ...fixes.slice(0, 1)].join('; '), error);
}
