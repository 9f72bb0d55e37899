/**
 * Models that play simulated users and judges. One call is one request, with bounded concurrency. An answer holds words or calls. Every error is thrown as
 * an OutsideFailure, so that its rollout is broken and never scored.
 */
import { createLimit } from '../domain/concurrency';
import type { ChatModel, ModelUsage } from '../domain/endpoints';
import type { PartnerRole } from '../domain/environment';
import type { OutsideFailure } from '../domain/failures';
import type { Message, ToolSchema, UserMessage } from '../domain/messages';
import { type Answer, openModelClient } from './client';
import { numbered, toAssistantMessage, toWireMessage, toWireTools } from '../policy/wire';

interface Outside {
  signal?: AbortSignal;
  /** Called once for each billed request. */
  onUsage?: (usage: ModelUsage) => void;
}

interface UserTurn extends Outside {
  /** The conversation as the user sees it: role `user` is the agent, `assistant` the user itself. */
  messages: Message[];
  tools: ToolSchema[];
  /** Equal turns get equal seeds. */
  seed: number;
}

export interface SimulatedUser {
  /** Model and sampling: part of the environment's version and of every rollout's key. */
  id: string;
  /** Returns the user's next message: words, or calls of its own tools. */
  speak(turn: UserTurn): Promise<UserMessage>;
  reachable?(): Promise<boolean>;
}

export interface Judge {
  id: string;
  answer(question: Message[], outside?: Outside): Promise<string>;
  reachable?(): Promise<boolean>;
}

export interface PartnerModels {
  user?: ChatModel | undefined;
  judge?: ChatModel | undefined;
}

export interface Partners {
  user?: SimulatedUser;
  judge?: Judge;
}

/** Judges use one seed, so that equal questions get equal answers. */
const JUDGE_SEED = 0;

/** Throws BadInput if a key's variable is not set. */
export function openPartners(models: PartnerModels): Partners {
  const partners: Partners = {};
  if (models.user) {
    const { id, ask, unusable, reachable } = openChatModel('user', models.user);
    const speak = async (turn: UserTurn): Promise<UserMessage> => {
      const { text, calls } = await ask(turn);
      const { content, toolCalls = [] } = toAssistantMessage(text, calls);
      // The agent would have to answer a malformed call of its user.
      if (toolCalls.length < calls.length)
        throw unusable('a call with arguments that are no JSON object; take another model');
      if (toolCalls.length === 0) return { role: 'user', content };
      // The agent's calls are named `call_n` in the same conversation.
      return { role: 'user', content, toolCalls: numbered(toolCalls, turn.messages, 'user_call') };
    };
    partners.user = { id, speak, reachable };
  }
  if (models.judge) {
    const { id, ask, unusable, reachable } = openChatModel('judge', models.judge);
    const answer: Judge['answer'] = async (messages, outside) => {
      const { text } = await ask({ messages, tools: [], seed: JUDGE_SEED, ...outside });
      if (!text.trim()) throw unusable(NOTHING);
      return text;
    };
    partners.judge = { id, answer, reachable };
  }
  return partners;
}

const NOTHING = 'an empty answer: no words and no calls; take another model';

const outage = { unavailable: 'PartnerUnavailable', lost: 'PartnerUnavailable', late: 'PartnerTimeout' } as const;
const failures = {
  user: { ...outage, unusable: 'UserSimulatorFailed', rejected: 'UserSimulatorRejected' },
  judge: { ...outage, unusable: 'JudgeFailed', rejected: 'JudgeRejected' },
} as const;

function openChatModel(role: PartnerRole, spec: ChatModel) {
  const { model, temperature, topP, maxTokens, concurrency, timeoutSeconds } = spec;
  const field = `target.${role}`;
  const client = openModelClient({ field, spec, failures: failures[role], totalSeconds: timeoutSeconds });
  const unusable = (problem: string): OutsideFailure => client.fail(failures[role].unusable, problem);
  // The deadline of a request does not include the wait for its turn.
  const inLimit = createLimit(concurrency);

  async function request({ messages, tools, seed, signal, onUsage }: UserTurn): Promise<Answer> {
    const body = {
      model,
      messages: messages.map(toWireMessage),
      ...(tools.length > 0 && { tools: toWireTools(tools) }),
      max_tokens: maxTokens,
      temperature,
      top_p: topP,
      seed,
    };
    const answer = await client.ask(body, { signal, onLost: onUsage });
    onUsage?.(answer.usage);
    if (answer.finish === 'length')
      throw unusable(`an answer cut off at ${maxTokens} tokens: raise ${field}.maxTokens`);
    if (!answer.text.trim() && answer.calls.length === 0) throw unusable(NOTHING);
    return answer;
  }
  return {
    // The address is no part: a server on another port must not invalidate rollouts. Serve different models under different names.
    id: `${model} (temperature ${temperature}, top-p ${topP}, ${maxTokens} tokens)`,
    unusable,
    reachable: client.reachable,
    ask: (turn: UserTurn) => inLimit(() => request(turn), turn.signal),
  };
}
