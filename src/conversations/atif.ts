/**
 * Trajectories in the Agent Trajectory Interchange Format (ATIF) of Harbor are read. Invariants: a step's message and each result of its observation
 * are a message of their own, in this order; what nobody scored is left out with a note.
 */
import { readFile } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { z } from 'zod';
import { jsonText } from '../domain/messages';
import { rewardOf as scoreOf } from './inspect-log';
import {
  clipped,
  contentSchema,
  type Conversation,
  isTooDeep,
  must,
  type Noted,
  outcomeFields,
  problemsIn,
  type RawMessage,
  rawToolSchema,
  rewardOf,
  toMessages,
  toTool,
} from './messages';

const text = (what: string) => z.string(must(what));

const stepSchema = z.looseObject({
  source: z.enum(['system', 'user', 'agent'], must('system, user or agent')),
  message: contentSchema,
  reasoning_content: z.string().nullish(),
  tool_calls: z
    .array(
      z.looseObject({
        tool_call_id: text("the call's id, as text"),
        function_name: text("the tool's name"),
        arguments: z.record(z.string(), z.unknown(), must('an object')),
      }),
      must('a list of calls'),
    )
    .nullish(),
  observation: z
    .looseObject({
      results: z.array(
        z.looseObject({ source_call_id: z.string().nullish(), content: contentSchema }),
        must('a list of {"source_call_id": "...", "content": "..."}'),
      ),
    })
    .nullish(),
});
type Step = z.infer<typeof stepSchema>;

const extraSchema = z.looseObject({ ...outcomeFields, task: z.string().min(1).optional().catch(undefined) }).nullish();

const trajectorySchema = z.looseObject({
  schema_version: z.string().regex(/^ATIF-v1\.\d+$/, must('a version of ATIF 1, such as ATIF-v1.7')),
  session_id: z.string().nullish(),
  trajectory_id: z.string().nullish(),
  agent: z.looseObject({ tool_definitions: z.array(rawToolSchema).nullish().catch(undefined) }).optional(),
  steps: z
    .array(stepSchema, must('a list of steps'))
    .refine((steps) => steps.some(({ source }) => source === 'agent'), must('a list with a step of the agent')),
  continued_trajectory_ref: z.string().nullish(),
  subagent_trajectories: z.array(z.unknown()).nullish(),
  extra: extraSchema,
  final_metrics: z.looseObject({ extra: extraSchema }).nullish(),
});

/** Whether a JSON value says that it is one. */
export const isTrajectory = (value: unknown): boolean =>
  /^ATIF-/.test(String((value as { schema_version?: unknown } | null)?.schema_version));

interface Told {
  /** Where it stands: of a line alone, what it is called by if it has no id. */
  file: string;
  scorer: string | undefined;
  noted: Noted;
}

/** @returns the problems of one that can't be used; undefined for one that nobody scored. */
export async function readTrajectory(value: unknown, told: Told): Promise<Conversation | string[] | undefined> {
  const { file, scorer, noted } = told;
  const { oddities } = noted;
  if (isTooDeep(value)) return [`is ${clipped(value)}; it must be a trajectory`];
  const { data, error } = trajectorySchema.safeParse(value);
  if (!data) return problemsIn(error, value);
  const { extra, final_metrics, agent, steps } = data;
  const trial = await trialOf(file, scorer);
  const outcome = [extra, final_metrics?.extra].find((one) => one && (one.reward ?? one.passed ?? one.success) != null);
  const reward = outcome ? rewardOf(outcome) : scoreOf(trial?.rewards ?? {}, scorer);
  if (reward === undefined) return undefined;
  if (typeof reward === 'string') return [reward];
  if (data.continued_trajectory_ref) oddities.push('a trajectory goes on in another file, which is not read with it');
  if (data.subagent_trajectories?.length) oddities.push('trajectories of subagents are left out');
  const id = trial?.name ?? data.trajectory_id ?? data.session_id ?? basename(file);
  const tools = agent?.tool_definitions;
  return {
    id,
    task: extra?.task ?? trial?.task ?? id,
    messages: toMessages(
      steps.flatMap((step) => messagesOf(step, oddities)),
      noted,
    ),
    reward,
    ...(tools && { tools: tools.map(toTool) }),
  };
}

function messagesOf(
  { source, message, tool_calls, observation, reasoning_content }: Step,
  oddities: string[],
): RawMessage[] {
  if (reasoning_content) oddities.push('content of type reasoning is left out');
  const calls = (tool_calls ?? []).map((call) => ({
    id: call.tool_call_id,
    function: call.function_name,
    arguments: call.arguments,
  }));
  const said: RawMessage =
    source === 'agent'
      ? { role: 'assistant', content: message, tool_calls: calls }
      : { role: source, content: message };
  const results = (observation?.results ?? []).map(({ source_call_id, content }): RawMessage => ({
    role: 'tool',
    tool_call_id: source_call_id,
    content,
  }));
  // A step of the system's that only says what came of something.
  return source === 'system' && results.length > 0 && message === '' ? results : [said, ...results];
}

const trialSchema = jsonText.pipe(
  z.looseObject({
    task_name: z.string().optional(),
    trial_name: z.string().optional(),
    verifier_result: z.looseObject({ rewards: z.record(z.string(), z.unknown()).nullish() }).nullish(),
  }),
);

/** Harbor writes TRIAL/agent/trajectory.json, and what it came to beside it, TRIAL/result.json. */
async function trialOf(file: string, scorer: string | undefined) {
  const folder = dirname(file);
  if (basename(folder) !== 'agent') return undefined;
  const body = await readFile(join(dirname(folder), 'result.json'), 'utf8').catch(() => '');
  const { data } = trialSchema.safeParse(body);
  if (!data) return undefined;
  const rewards = data.verifier_result?.rewards ?? {};
  // The one that Harbor itself counts, where there are several.
  const counted = scorer === undefined && 'reward' in rewards ? { reward: rewards['reward'] } : rewards;
  return {
    name: data.trial_name,
    task: data.task_name,
    rewards: Object.fromEntries(Object.entries(counted).map(([name, value]) => [name, { value }])),
  };
}
