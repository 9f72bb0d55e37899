/**
 * Rollouts in the Agent Trajectory Interchange Format (ATIF), each a file. Invariant: a broken rollout, of which there is no conversation, is not
 * written: the format has no place for it, and it is no failure of the agent's.
 */
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Message, ToolCall } from '../domain/messages';
import {
  adaptersOf,
  fileNameOf,
  type LogWriter,
  modelName,
  originOf,
  userCalls,
  written,
  type WrittenBatch,
  writtenArguments,
} from './written';

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
    if (own.length > 0) step.extra = { tool_calls: own.map(callOf) };
    if (role === 'assistant' && message.toolCalls?.length) step.tool_calls = message.toolCalls.map(callOf);
  }
  return steps;
}

const callOf = (call: ToolCall): Call => ({
  tool_call_id: call.id,
  function_name: call.name,
  arguments: writtenArguments(call),
});
