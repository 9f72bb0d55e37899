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

export interface Outside {
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

type Reply = { content: string; calls: Parameters<typeof toAssistantMessage>[1] };

interface OpenChatModel {
  ask(request: UserTurn): Promise<Reply>;
  /** What makes an answer unusable, as a failure. */
  unusable(problem: string): OutsideFailure;
}

/** Throws BadInput if the key's variable is not set. */
function openChatModel(role: PartnerRole, model: ChatModel): OpenChatModel {
  const field = `target.${role}`;
  const caller: Caller = { field, spec: model, failures: failures[role] };
  const unusable = (problem: string) => callerFailure(caller, { type: caller.failures.failed, problem });
  const endpoint = openEndpoint({ url: model.url, key: keyOf(`${field}.apiKeyEnv`, model.apiKeyEnv) });
  // Not left to the connections: a request that waits for one is on the clock already.
  const limited = createLimit(model.concurrency);

  async function ask({ messages, tools, seed, signal, onUsage }: UserTurn): Promise<Reply> {
    signal?.throwIfAborted();
    const deadline = AbortSignal.timeout(model.timeoutSeconds * 1000);
    const body = {
      model: model.model,
      messages: messages.map(toWireMessage),
      ...(tools.length > 0 && { tools: toWireTools(tools) }),
      max_tokens: model.maxTokens,
      temperature: model.temperature,
      top_p: model.topP,
      seed,
    };
    let answer: unknown;
    let told: ReturnType<typeof parseCompletion> | undefined;
    try {
      const own = AbortSignal.any(signal ? [signal, deadline] : [deadline]);
      answer = await endpoint.json({ path: '/chat/completions', body, signal: own });
      told = parseCompletion(answer);
      if (told.finish === 'length')
        throw unusable(`an answer cut off at ${model.maxTokens} tokens: raise ${field}.maxTokens`);
      return { content: told.message.content ?? '', calls: told.message.tool_calls ?? [] };
    } catch (error) {
      signal?.throwIfAborted();
      if (deadline.aborted) throw unusable(`no answer within ${model.timeoutSeconds} s (${field}.timeoutSeconds)`);
      throw endpointFailure(caller, error);
    } finally {
      // Once it was asked it is paid for, whoever still wants the answer.
      if (answer !== undefined || signal?.aborted || deadline.aborted)
        onUsage?.(told?.usage ?? estimate(body, told?.message));
    }
  }
  return { unusable, ask: (request) => limited(() => ask(request)) };
}

/** By what was asked and answered, where the endpoint does not tell it. */
function estimate(asked: object, answered: object | undefined): ModelUsage {
  const tokens = (value: object) => tokensOf(JSON.stringify(value).length);
  return { promptTokens: tokens(asked), cachedTokens: 0, completionTokens: answered ? tokens(answered) : 0 };
}

const failures = {
  user: { unavailable: 'PartnerUnavailable', failed: 'UserSimulatorFailed', rejected: 'UserSimulatorRejected' },
  judge: { unavailable: 'PartnerUnavailable', failed: 'JudgeFailed', rejected: 'JudgeRejected' },
} as const;

/**
 * Model and sampling, not the address: a server that moves to another port must not make every rollout anew. Two models of one name are
 * told apart by serving them under different names.
 */
const idOf = ({ model, temperature, topP, maxTokens }: ChatModel) =>
  `${model} (temperature ${temperature}, top-p ${topP}, ${maxTokens} tokens)`;

const NOTHING = 'an empty answer: no words and no calls';
/** A judge's seed is always the same: what is asked determines what is answered. */
const JUDGE_SEED = 0;

/** Throws BadInput if a key's variable is not set. */
export function openPartners(models: { user?: ChatModel | undefined; judge?: ChatModel | undefined }): Partners {
  return {
    ...(models.user && { user: openUser(models.user) }),
    ...(models.judge && { judge: openJudge(models.judge) }),
  };
}

function openUser(spec: ChatModel): SimulatedUser {
  const model = openChatModel('user', spec);
  return {
    id: idOf(spec),
    async speak(turn) {
      const reply = await model.ask(turn);
      const { content, toolCalls = [] } = toAssistantMessage(reply.content, reply.calls);
      // To the policy a malformed call is a mistake of its own; from the user it would be nonsense that the agent has to hear.
      if (toolCalls.length < reply.calls.length) throw model.unusable('a call with arguments that are no JSON object');
      if (toolCalls.length === 0 && !content.trim()) throw model.unusable(NOTHING);
      // The agent's calls are named `call_n` in the same conversation.
      return {
        role: 'user',
        content,
        ...(toolCalls.length > 0 && { toolCalls: numbered(toolCalls, turn.messages, 'user_call') }),
      };
    },
  };
}

function openJudge(spec: ChatModel): Judge {
  const model = openChatModel('judge', spec);
  return {
    id: idOf(spec),
    async answer(question, outside) {
      const { content } = await model.ask({ messages: question, tools: [], seed: JUDGE_SEED, ...outside });
      if (!content.trim()) throw model.unusable(NOTHING);
      return content;
    },
  };
}
