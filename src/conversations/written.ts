/**
 * Rollouts in formats of others: as a log of Inspect (`.eval`), in which a sample is a rollout, of its task the id and of its attempt the epoch; and in
 * the Agent Trajectory Interchange Format (ATIF), each a file. All is JSON that any reader takes. Invariants: a broken rollout is a sample with an error
 * and without a score, and enters no metric, and no trajectory at all, as that format has no place for it; of the rollouts that are written one is held
 * at a time, and of each a summary.
 */
import { digest } from '../artifacts/hash';
import { type Message, type ToolCall, openingOf } from '../domain/messages';
import { type Rollout, isSuccess, type ScoredRollout } from '../domain/rollout';
import { isTooDeep } from './messages';
import { createWriteStream } from 'node:fs';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { ZipFile } from 'yazl';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';

/** Rollouts that were made together: of one policy, at one time. */
export interface WrittenBatch {
  campaign: string;
  /** For people, such as `test: trace`. */
  title: string;
  /** What it was made for, and of which arm, capability or policy. */
  stage: string;
  what: string;
  of: string;
  sha256: string;
  /** sha256 of the adapters and routers that it was made with. */
  adapters: string[];
  routers: string[];
}

interface WrittenRollout {
  rollout: Rollout;
  seed: number;
  /** Capabilities that it lacks, by the labels. */
  labels: string[];
}

export interface LogWriter {
  /** One after the other. @returns whether the format has a place for it. */
  add(one: WrittenRollout): Promise<boolean>;
  close(): Promise<void>;
}

/** What leads back to the campaign. */
const originOf = (batch: WrittenBatch, { rollout, seed, labels }: WrittenRollout) => ({
  ...{ campaign: batch.campaign, stage: batch.stage, arm: batch.of, batch: batch.sha256 },
  ...{ rollout: rollout.key, task: rollout.task, attempt: rollout.attempt, seed },
  ...{ adapters: adaptersOf(batch, rollout), routers: batch.routers },
  ...(labels.length > 0 && { labels }),
  ...(rollout.status === 'scored' && {
    stop_reason: rollout.stopReason,
    ...(rollout.branch !== undefined && { branch: rollout.branch }),
    ...(rollout.hinted && { hinted: true }),
    ...(rollout.routed && { routed: rollout.routed.chosen, probabilities: rollout.routed.probabilities }),
    ...(rollout.reference && { reference: rollout.reference }),
  }),
});

/** Those that the router chose, where one did. */
const adaptersOf = (batch: WrittenBatch, rollout: Rollout): string[] =>
  rollout.status === 'scored' && rollout.routed
    ? rollout.routed.policy.adapters.map(({ ref }) => ref.sha256)
    : batch.adapters;

const modelName = ({ of }: WrittenBatch): string => `campaign/${of || 'base'}`;

/** Readers in Python stop at a thousand levels, and an agent may write more. */
const writtenArguments = ({ arguments: values }: ToolCall): ToolCall['arguments'] =>
  isTooDeep(values) ? { 'not written': 'it is nested too deep' } : values;

/** What a simulated user did with tools of its own, which no format has a place for. */
const userCalls = (message: Message): ToolCall[] => (message.role === 'user' ? (message.toolCalls ?? []) : []);

/** JSON in which half a surrogate pair, which readers in Python refuse, is U+FFFD. */
const written = (value: unknown): string =>
  JSON.stringify(value).replace(/\\(u[dD][89a-fA-F][0-9a-fA-F]{2}|.)/g, (escape, code: string) =>
    code.length > 1 ? '\\ufffd' : escape,
  );

const LONGEST_NAME = 100;

/** A text as a file's name, another one for every text. */
export function fileNameOf(text: string): string {
  if (text.length <= LONGEST_NAME && /^[\w=+][\w.=+-]*$/.test(text)) return text;
  const name = text.replace(/[^\w=+]+/g, '-').slice(0, LONGEST_NAME);
  return `${name.replace(/^-|-$/g, '')}-${digest(text).slice(0, 8)}`.replace(/^-/, '');
}

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

/** The oldest that has all fields that are written. */
const VERSION = 'ATIF-v1.7';

/** `folder`: is there. */
export const openAtifFolder = ({ folder, batch }: { folder: string; batch: WrittenBatch }): LogWriter => ({
  async add(one) {
    const { rollout } = one;
    if (rollout.status === 'broken' || rollout.messages.length === 0) return false;
    const { reward, breakdown, usage, messages } = rollout;
    const steps = stepsOf(messages);
    const trajectory = {
      schema_version: VERSION,
      session_id: rollout.key,
      trajectory_id: rollout.key,
      agent: {
        name: 'campaign',
        version:
          adaptersOf(batch, rollout)
            .map((sha) => sha.slice(0, 12))
            .join('+') || 'base',
        model_name: modelName(batch),
      },
      steps,
      final_metrics: {
        total_prompt_tokens: usage.promptTokens,
        total_completion_tokens: usage.completionTokens,
        total_steps: steps.length,
      },
      extra: { reward, breakdown, ...originOf(batch, one) },
    };
    await writeFile(join(folder, `${fileNameOf(rollout.task)}-${rollout.attempt}.json`), `${written(trajectory)}\n`);
    return true;
  },
  close: () => Promise.resolve(),
});

interface Step {
  step_id: number;
  source: 'system' | 'user' | 'agent';
  message: string;
  tool_calls?: Call[];
  observation?: { results: { source_call_id?: string; content: string; extra?: object }[] };
  extra?: object;
}
interface Call {
  tool_call_id: string;
  function_name: string;
  arguments: ToolCall['arguments'];
}

/** A result belongs to the step whose call it answers, and names no call of another step. */
function stepsOf(messages: readonly Message[]): Step[] {
  const steps: Step[] = [];
  const add = (source: Step['source'], message: string): Step => {
    const step = { step_id: steps.length + 1, source, message };
    steps.push(step);
    return step;
  };
  for (const message of messages) {
    const { role, content } = message;
    if (role === 'tool') {
      const step = steps.at(-1) ?? add('system', '');
      const isAnswer = step.tool_calls?.some((call) => call.tool_call_id === message.toolCallId);
      step.observation ??= { results: [] };
      step.observation.results.push(
        isAnswer
          ? { source_call_id: message.toolCallId, content }
          : { content, extra: { tool_call_id: message.toolCallId, requestor: message.requestor ?? 'agent' } },
      );
      continue;
    }
    const step = add(role === 'assistant' ? 'agent' : role, content);
    const own = userCalls(message);
    if (own.length > 0) step.extra = { tool_calls: own.map(atifCall) };
    if (role === 'assistant' && message.toolCalls?.length) step.tool_calls = message.toolCalls.map(atifCall);
  }
  return steps;
}

const atifCall = (call: ToolCall): Call => ({
  tool_call_id: call.id,
  function_name: call.name,
  arguments: writtenArguments(call),
});
