/**
 * Which policy plays a conversation. Invariants: a conversation is routed once, by the messages before the agent's first answer, as the campaign's
 * evaluation was routed; it keeps its policy as long as it is known, also after another campaign is served; only hashes of messages are kept.
 */
import { digest, seedOf, sha256 } from '../store/hash';
import type { Context } from '../domain/environment';
import type { FixedPolicy } from '../domain/rollout';
import type { Resolve } from '../rollout/resolve';
import { badRequest, GatewayError } from './errors';
import { type ChatRequest, openingIn } from './request';
import type { Served } from './served';

export interface Conversation {
  policy: FixedPolicy;
  chosen: string;
  served: Served;
}

/** Time to choose a policy. It does not depend on the request: others may wait for the same choice. */
const ROUTING_MS = 60_000;

/** Characters of a first user message. It is more than any context holds, and counting words blocks all other requests. */
const LONGEST = 1_000_000;

/** Conversations that are known. Of more, those that were used longest ago are forgotten. */
const KNOWN = 100_000;

export function createConversations(o: {
  served: () => Served;
  resolve: Resolve;
  onRouted?: (chosen: string, seconds: number) => void;
}) {
  const { served, resolve, onRouted } = o;
  const conversations = new Map<string, Promise<Conversation>>();

  async function choose(o: { model: string; opening: Context; seed: number }): Promise<Conversation> {
    const { model, opening, seed } = o;
    const now = served();
    const policy = now.policies.get(model);
    if (!policy) throw unknownModel(model, now);
    if (!('router' in policy)) return { served: now, policy, chosen: model };
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
    return { served: now, policy: resolved.policy, chosen };
  }

  return {
    /** `id` is the client's name for it. Throws GatewayError for a model that is not served, and what routing throws. */
    of(request: ChatRequest, id?: string): Promise<Conversation> {
      const { model, user } = request;
      const opening = openingIn(request);
      const begins = sha256(JSON.stringify(opening.messages));
      const key = digest({ model, ...(id ? { id } : { user, begins }) });
      const known = conversations.get(key);
      const conversation = known ?? choose({ model, opening, seed: seedOf(key) });
      conversations.delete(key);
      conversations.set(key, conversation);
      const [oldest] = conversations.size > KNOWN ? conversations.keys() : [];
      if (oldest !== undefined) conversations.delete(oldest);
      // One whose routing failed is routed again by the next request.
      if (!known) conversation.catch(() => conversations.get(key) === conversation && conversations.delete(key));
      return conversation;
    },
    size: () => conversations.size,
  };
}

function unknownModel(model: string, { policies }: Served): GatewayError {
  const names = [...policies.keys()].join(', ');
  return new GatewayError(404, `model ${JSON.stringify(model.slice(0, 100))} is not served; there are: ${names}`, {
    param: 'model',
    code: 'model_not_found',
  });
}

/** Returns the label of a model in metrics: a client's own words are no label. */
export const labelOf = (model: string, { policies }: Served): string => (policies.has(model) ? model : 'unknown');
