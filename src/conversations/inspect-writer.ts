/**
 * Rollouts as a log of Inspect (`.eval`): a sample is a rollout, of its task the id and of its attempt the epoch. Invariants: a broken rollout is a
 * sample with an error and without a score, and enters no metric; of the rollouts that are written one is held at a time, and of each a summary.
 */
import { createWriteStream } from 'node:fs';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { ZipFile } from 'yazl';
import { type Message, openingOf } from '../domain/messages';
import { isSuccess, type Rollout, type ScoredRollout } from '../domain/rollout';
import {
  fileNameOf,
  type LogWriter,
  modelName,
  originOf,
  userCalls,
  written,
  type WrittenBatch,
  writtenArguments,
  type WrittenRollout,
} from './written';

/** Characters of a text in the list of samples. */
const SUMMARY = 500;
const SCORER = 'reward';

export function openInspectLog({ file, batch }: { file: string; batch: WrittenBatch }): LogWriter {
  const zip = openZip(file);
  const now = new Date().toISOString();
  const model = modelName(batch);
  /** As texts: a piece of a string keeps all of it in memory. */
  const summaries: string[] = [];
  const ids = new Set<string>();
  const sums = { scored: 0, reward: 0, solved: 0, prompt: 0, completion: 0 };
  return {
    async add(one) {
      const { rollout } = one;
      const sample = sampleOf(one, batch);
      ids.add(sample.id);
      if (rollout.status === 'scored') {
        sums.scored += 1;
        sums.reward += rollout.reward;
        sums.solved += Number(isSuccess(rollout));
        sums.prompt += rollout.usage.promptTokens;
        sums.completion += rollout.usage.completionTokens;
      }
      summaries.push(written(summaryOf(sample)));
      await zip.put(`samples/${sample.id}_epoch_${sample.epoch}.json`, written(sample));
      return true;
    },
    async close() {
      const { scored } = sums;
      const total = summaries.length;
      const metric = (name: string, sum: number) => ({ [name]: { name, value: sum / scored, params: {} } });
      const score = {
        ...{ name: SCORER, scorer: SCORER, params: {}, scored_samples: scored, unscored_samples: total - scored },
        metrics: scored > 0 ? { ...metric('mean', sums.reward), ...metric('success_rate', sums.solved) } : {},
      };
      await zip.put('summaries.json', `[${summaries.join(',')}]`);
      const header = {
        version: 2,
        status: 'success',
        eval: {
          ...{ created: now, task: batch.what, task_id: batch.sha256, run_id: batch.campaign, eval_id: batch.sha256 },
          ...{ model, dataset: { name: batch.campaign, samples: ids.size } },
          config: {},
          scorers: [{ name: SCORER, metrics: [{ name: 'mean' }, { name: 'success_rate' }] }],
          metadata: { campaign: batch.campaign, title: batch.title, stage: batch.stage, arm: batch.of },
        },
        plan: {},
        results: { total_samples: total, completed_samples: scored, scores: [score] },
        stats: { started_at: now, completed_at: now, model_usage: { [model]: usageOf(sums.prompt, sums.completion) } },
      };
      await zip.put('header.json', written(header));
      await zip.end();
    },
  };
}

/** One entry is held at a time. */
function openZip(file: string) {
  const zip = new ZipFile();
  let fail: (error: unknown) => void = () => undefined;
  const done = Promise.race([
    pipeline(zip.outputStream, createWriteStream(file)),
    new Promise<never>((_, reject) => void zip.on('error', reject)),
  ]);
  done.catch((error: unknown) => fail(error));
  return {
    put(name: string, text: string): Promise<void> {
      // The zip keeps until its end what gives an entry's body, and all that this closes over: it is to keep no body.
      let body: Buffer | undefined = Buffer.from(text);
      return new Promise((resolve, reject) => {
        fail = reject;
        zip.addReadStreamLazy(name, (give) => {
          give(null, Readable.from([body]));
          body = undefined;
          resolve();
        });
      });
    },
    async end() {
      zip.end();
      await done;
    },
  };
}

/** Ids are names in the zip. */
const isPlainId = (id: string): boolean => id.length <= 200 && !/\\|(^|\/)\.{1,2}(\/|$)|\p{C}/u.test(id);

function sampleOf(one: WrittenRollout, batch: WrittenBatch) {
  const { rollout } = one;
  const common = {
    id: isPlainId(rollout.task) ? rollout.task : fileNameOf(rollout.task),
    epoch: rollout.attempt + 1,
    target: '',
    uuid: `${batch.sha256.slice(0, 12)}-${rollout.key}`,
    metadata: originOf(batch, one),
  };
  return rollout.status === 'scored'
    ? { ...common, ...playedOf(rollout, modelName(batch)) }
    : { ...common, ...brokenOf(rollout, modelName(batch)) };
}
type Sample = ReturnType<typeof sampleOf>;

function playedOf(rollout: ScoredRollout, model: string) {
  const { usage, reward, breakdown, output, seconds } = rollout;
  const messages = chatOf(rollout.messages);
  const last = messages.findLast(({ role }) => role === 'assistant');
  const used = usageOf(usage.promptTokens, usage.completionTokens);
  return {
    input: messages.slice(0, openingOf(rollout.messages).length),
    messages,
    output: {
      model,
      choices: last ? [{ message: last, stop_reason: last.tool_calls ? 'tool_calls' : 'stop' }] : [],
      usage: used,
    },
    scores: { [SCORER]: { value: reward, ...(output && { explanation: output }), metadata: breakdown } },
    model_usage: { [model]: used },
    total_time: seconds,
  };
}

const brokenOf = ({ error }: Exclude<Rollout, ScoredRollout>, model: string) => ({
  input: '',
  messages: [],
  output: { model, choices: [] },
  error: { message: `${error.type}: ${error.message}`, traceback: '', traceback_ansi: '' },
});

function summaryOf(sample: Sample): object {
  const { id, epoch, target, uuid, metadata } = sample;
  const { rollout, seed, stop_reason } = metadata as Record<string, unknown>;
  const common = { id, epoch, target, uuid, metadata: { rollout, seed, stop_reason }, completed: true };
  if ('error' in sample) return { ...common, input: '', error: sample.error.message.slice(0, SUMMARY) };
  const asked = sample.messages.find(({ role }) => role === 'user')?.content ?? '';
  const { scores, model_usage, total_time, messages } = sample;
  return {
    ...{ ...common, input: asked.slice(0, SUMMARY), scores: { [SCORER]: { value: scores[SCORER]?.value } } },
    ...{ model_usage, total_time, message_count: messages.length },
  };
}

const usageOf = (input: number, output: number) => ({
  input_tokens: input,
  output_tokens: output,
  total_tokens: input + output,
});

interface ChatMessage {
  role: Message['role'];
  content: string;
  tool_calls?: object[];
  tool_call_id?: string;
  function?: string;
  metadata?: object;
}

function chatOf(messages: readonly Message[]): ChatMessage[] {
  const names = new Map<string, string>();
  return messages.map((message): ChatMessage => {
    const { role, content } = message;
    if (role === 'tool') {
      const name = names.get(message.toolCallId);
      return {
        ...{ role, content, tool_call_id: message.toolCallId, ...(name !== undefined && { function: name }) },
        ...(message.requestor && { metadata: { requestor: message.requestor } }),
      };
    }
    const own = userCalls(message).map(callOf);
    if (role !== 'assistant') return { role, content, ...(own.length > 0 && { metadata: { tool_calls: own } }) };
    const calls = message.toolCalls ?? [];
    for (const { id, name } of calls) names.set(id, name);
    return { role, content, ...(calls.length > 0 && { tool_calls: calls.map(callOf) }) };
  });
}

const callOf = (call: Parameters<typeof writtenArguments>[0]) => ({
  ...{ id: call.id, function: call.name, type: 'function' },
  arguments: writtenArguments(call),
});
