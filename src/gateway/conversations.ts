/**
 * Which policy plays a conversation. Invariants: a conversation is routed once, by what was said before the agent's first answer, with the code that
 * the campaign's evaluation was routed with; it keeps its policy as long as it is known, also after another campaign is served; nothing of what
 * was said is kept, but hashes.
 */
import { digest, seedOf, sha256 } from '../artifacts/hash';
import type { Context } from '../domain/environment';
import type { FixedPolicy } from '../domain/rollout';
import type { Resolve } from '../rollout/resolve';
import { badRequest, GatewayError } from './errors';
import { type ChatRequest, openingIn } from './request';
import type { Served } from './served';

export interface Conversation {
  policy: FixedPolicy;
  /** The name of the policy. */
  chosen: string;
  served: Served;
  /** By which a group of policy servers knows it; absent where only its opening tells it from others. */
  affinity?: object;
}

/** Of choosing a policy: whoever asked first may go, and others wait for the same. */
const ROUTING_MS = 60_000;

/** More than any context holds; while a router counts words, nobody else is answered. */
const LONGEST = 1_000_000;

/** How many are known; those that were asked for longest ago are forgotten, and routed anew by what their messages begin with. */
const KNOWN = 100_000;

export function createConversations(o: {
  served: () => Served;
  resolve: Resolve;
  known?: number;
  onRouted?: (chosen: string, seconds: number) => void;
}) {
  const { served, resolve, known = KNOWN, onRouted } = o;
  const conversations = new Map<string, Promise<Conversation>>();
  /** Those of users by what was said last in them; of what was said in several, none. */
  const asked = new Map<string, Promise<Conversation> | undefined>();

  function keep<Known>(all: Map<string, Known>, key: string, one: Known): void {
    all.delete(key);
    all.set(key, one);
    for (const oldest of all.keys()) {
      if (all.size <= known) break;
      all.delete(oldest);
    }
  }

  async function choose(o: { model: string; opening: Context; seed: number; named: boolean }): Promise<Conversation> {
    const { model, opening, seed, named } = o;
    const now = served();
    const policy = now.policies.get(model);
    if (!policy) throw unknownModel(model, now);
    const about = { served: now, ...(named && { affinity: {} }) };
    if (!('router' in policy)) return { ...about, policy, chosen: model };
    const asked = opening.messages.find(({ role }) => role === 'user');
    if (!asked)
      throw badRequest('messages: a conversation is routed by its first user message, and has none', 'messages');
    if (asked.content.length > LONGEST)
      throw badRequest(
        `messages: the first user message has over ${LONGEST} characters; send a shorter one`,
        'messages',
      );
    const begun = performance.now();
    const resolved = await resolve(policy, { ...opening, seed, signal: AbortSignal.timeout(ROUTING_MS) });
    const chosen = resolved.routed?.chosen ?? model;
    onRouted?.(chosen, (performance.now() - begun) / 1000);
    return { ...about, policy: resolved.policy, chosen };
  }

  return {
    /** `id`: by which the client names it. Throws GatewayError for a model that is not served, and what routing throws. */
    async of(request: ChatRequest, id?: string): Promise<Conversation> {
      const { model, user } = request;
      const opening = openingIn(request);
      const said = hashOf(opening.messages);
      const key = digest([model, ...(id ? ['id', id] : user ? ['user', user, said] : ['opening', said])]);
      const lastIn = (messages: ChatRequest['messages']) => digest([model, user, hashOf(messages.slice(-2))]);
      const isOfUser = !id && user;
      const conversation =
        conversations.get(key) ??
        // An agent that has left out the beginning of what was said has kept what it asked last; one that begins with answers of others has asked nothing.
        (isOfUser ? asked.get(lastIn(answeredIn(request))) : undefined) ??
        choose({ model, opening, seed: seedOf(key), named: Boolean(id ?? user) });
      keep(conversations, key, conversation);
      const last = isOfUser ? lastIn(request.messages) : '';
      if (last) keep(asked, last, asked.has(last) && asked.get(last) !== conversation ? undefined : conversation);
      // One that could not be begun is begun anew by whoever asks next.
      conversation.catch(() => {
        if (conversations.get(key) === conversation) conversations.delete(key);
        if (asked.get(last) === conversation) asked.delete(last);
      });
      return conversation;
    },
    size: () => conversations.size,
  };
}

const hashOf = (messages: readonly object[]): string => sha256(JSON.stringify(messages));

/** Up to the last answer: what that is an answer to. */
const answeredIn = ({ messages }: ChatRequest): ChatRequest['messages'] =>
  messages.slice(
    0,
    Math.max(
      0,
      messages.findLastIndex(({ role }) => role === 'assistant'),
    ),
  );

function unknownModel(model: string, { policies }: Served): GatewayError {
  const names = [...policies.keys()].join(', ');
  return new GatewayError(404, `model ${JSON.stringify(model.slice(0, 100))} is not served; there are: ${names}`, {
    param: 'model',
    code: 'model_not_found',
  });
}

/** Of the metrics: a client's own words are no label. */
export const labelOf = (model: string, { policies }: Served): string => (policies.has(model) ? model : 'unknown');
