/** A turn of a policy: what is asked for and what comes back. */
import type { AssistantMessage, Message, ToolSchema } from '../domain/messages';
import type { FixedPolicy, Sampling } from '../domain/rollout';

/** One answer of a policy. */
export interface Turn {
  message: AssistantMessage;
  /** `length`: cut off, by the sampling's maxTokens, the end of the context, or a server that saw it repeat itself. */
  finishReason: 'stop' | 'tool_calls' | 'length';
  promptIds: number[];
  /** The sampled ids, end of turn included. */
  tokenIds: number[];
  /** Of the sampled ids, at temperature 1, in nats. */
  logprobs: number[];
}

export interface TurnRequest {
  /** Its prompt is in the messages already. */
  policy: FixedPolicy;
  messages: Message[];
  tools: ToolSchema[];
  sampling: Sampling;
  seed: number;
  signal?: AbortSignal;
  /** Whenever what makes the policy ready to serve can be seen to work: a merge takes minutes. */
  onWork?: () => void;
}
