/**
 * The other parties to an episode that are played by a model, the simulated user and the judge. One call is one request, and no more of them run at
 * once than the file allows; an answer holds words or calls, never nothing; whatever goes wrong leaves as an OutsideFailure, so that the rollout is
 * broken and never scored.
 */
import { createLimit } from '../domain/concurrency';
import { type ChatModel, type ModelUsage, tokensOf } from '../domain/endpoints';
import type { PartnerRole } from '../domain/environment';
import type { OutsideFailure } from '../domain/failures';
import type { Message, ToolSchema, UserMessage } from '../domain/messages';
import { type Caller, callerFailure, endpointFailure, keyOf, openEndpoint } from '../language-model/endpoint';
import { parseCompletion } from '../language-model/reply';
import { numbered, toAssistantMessage, toWireMessage, toWireTools } from '../policy/wire';

interface Outside {
  signal?: AbortSignal;
  /** Called once where the request is paid for, whatever comes of it. */
  onUsage?: (usage: ModelUsage) => void;
}

interface UserTurn extends Outside {
  /** The whole conversation from where the user stands: `user` are the agent's words, `assistant` its own. */
  messages: Message[];
  tools: ToolSchema[];
  /** Of this turn; equal turns get equal seeds. */
  seed: number;
}

export interface SimulatedUser {
  /** Everything that determines its answers (model, sampling): part of the environment's version, and so of every rollout's key. */
  id: string;
  /** The user's next message: words or calls of its own tools, never nothing. */
  speak(turn: UserTurn): Promise<UserMessage>;
}

export interface Judge {
  id: string;
  /** The answer, in words. */
  answer(question: Message[], outside?: Outside): Promise<string>;
}

export interface Partners {
  user?: SimulatedUser;
  judge?: Judge;
}

/** A judge's seed is always the same: what is asked determines what is answered. */
const JUDGE_SEED = 0;

/** Throws BadInput if a key's variable is not set. */
export function openPartners(models: { user?: ChatModel | undefined; judge?: ChatModel | undefined }): Partners {
  const partners: Partners = {};
  if (models.user) {
    const { id, ask, unusable } = openChatModel('user', models.user);
    const speak = async (turn: UserTurn): Promise<UserMessage> => {
      const reply = await ask(turn);
      const { content, toolCalls = [] } = toAssistantMessage(reply.content, reply.calls);
      // To the policy a malformed call is a mistake of its own; from the user it would be nonsense that the agent has to hear.
      if (toolCalls.length < reply.calls.length)
        throw unusable('a call with arguments that are no JSON object; take another model');
      if (toolCalls.length === 0) return { role: 'user', content };
      // The agent's calls are named `call_n` in the same conversation.
      return { role: 'user', content, toolCalls: numbered(toolCalls, turn.messages, 'user_call') };
    };
    partners.user = { id, speak };
  }
  if (models.judge) {
    const { id, ask, unusable } = openChatModel('judge', models.judge);
    const answer: Judge['answer'] = async (messages, outside) => {
      const { content } = await ask({ messages, tools: [], seed: JUDGE_SEED, ...outside });
      if (!content.trim()) throw unusable(NOTHING);
      return content;
    };
    partners.judge = { id, answer };
  }
  return partners;
}

const NOTHING = 'an empty answer: no words and no calls; take another model';

const outage = { unavailable: 'PartnerUnavailable', failed: 'PartnerUnavailable' } as const;
const failures = {
  user: { ...outage, unusable: 'UserSimulatorFailed', rejected: 'UserSimulatorRejected' },
  judge: { ...outage, unusable: 'JudgeFailed', rejected: 'JudgeRejected' },
} as const;

function openChatModel(role: PartnerRole, spec: ChatModel) {
  const { model, url, temperature, topP, maxTokens, concurrency, timeoutSeconds } = spec;
  const field = `target.${role}`;
  const caller: Caller = { field, spec, failures: failures[role] };
  /** What makes an answer unusable, as a failure. */
  const unusable = (problem: string): OutsideFailure =>
    callerFailure(caller, { type: failures[role].unusable, problem });
  const endpoint = openEndpoint({ url, key: keyOf(`${field}.apiKeyEnv`, spec) });
  // Not left to the connections: a request that waits for one is on the clock already.
  const limited = createLimit(concurrency);

  async function request({ messages, tools, seed, signal, onUsage }: UserTurn) {
    signal?.throwIfAborted();
    const deadline = AbortSignal.timeout(timeoutSeconds * 1000);
    const body = {
      model,
      messages: messages.map(toWireMessage),
      ...(tools.length > 0 && { tools: toWireTools(tools) }),
      max_tokens: maxTokens,
      temperature,
      top_p: topP,
      seed,
    };
    let answer: unknown;
    let completion: ReturnType<typeof parseCompletion> | undefined;
    try {
      const own = AbortSignal.any(signal ? [signal, deadline] : [deadline]);
      answer = await endpoint.json({ path: '/chat/completions', body, signal: own });
      completion = parseCompletion(answer);
      if (completion.finish === 'length')
        throw unusable(`an answer cut off at ${maxTokens} tokens: raise ${field}.maxTokens`);
      const { content, tool_calls: calls } = completion.message;
      if (!content?.trim() && !calls?.length) throw unusable(NOTHING);
      return { content: content ?? '', calls: calls ?? [] };
    } catch (error) {
      signal?.throwIfAborted();
      if (deadline.aborted) {
        const problem = `no answer within ${timeoutSeconds} s; raise ${field}.timeoutSeconds or lower ${field}.maxTokens`;
        throw callerFailure(caller, { type: 'PartnerTimeout', problem });
      }
      throw endpointFailure(caller, error);
    } finally {
      // Once it was asked it is paid for, whoever still wants the answer.
      if (answer !== undefined || signal?.aborted || deadline.aborted)
        onUsage?.(completion?.usage ?? estimate(body, completion?.message));
    }
  }
  return {
    // Without the address: a server that moves to another port must not make every rollout anew. Two models of one name are told apart by
    // serving them under different names.
    id: `${model} (temperature ${temperature}, top-p ${topP}, ${maxTokens} tokens)`,
    unusable,
    ask: (turn: UserTurn) => limited(() => request(turn)),
  };
}

/** By what was asked and answered, where the endpoint does not tell it. */
function estimate(asked: object, answered: object | undefined): ModelUsage {
  const tokens = (value: object) => tokensOf(JSON.stringify(value).length);
  return { promptTokens: tokens(asked), cachedTokens: 0, completionTokens: answered ? tokens(answered) : 0 };
}
