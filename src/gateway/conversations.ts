/**
 * Assigns policies to conversations. Invariants: a conversation is routed once, by the messages before the agent's first answer, as in the campaign's
 * evaluation; it keeps its policy as long as it is remembered; only hashes of messages are stored.
 */
import { digest, seedOf, sha256 } from '../store/hash';
import type { Context } from '../domain/environment';
import type { FixedPolicy } from '../domain/rollout';
import type { Resolve } from '../rollout/resolve';
import { badRequest, GatewayError } from './errors';
import { type ChatRequest, openingIn } from './request';
import type { Served } from './served';

interface Conversation {
  policy: FixedPolicy;
  chosen: string;
}

/** Time to choose a policy. It does not depend on the request: others may wait for the same choice. */
const ROUTING_MS = 60_000;

/** Conversations that are known. Of more, those that were used longest ago are forgotten. */
const KNOWN = 100_000;

export function createConversations({ served, resolve }: { served: Served; resolve: Resolve }) {
  const conversations = new Map<string, Promise<Conversation>>();

  async function choose(o: { model: string; opening: Context; seed: number }): Promise<Conversation> {
    const { model, opening, seed } = o;
    const policy = served.policies.get(model);
    if (!policy) throw unknownModel(model, served);
    if (!('router' in policy)) return { policy, chosen: model };
    if (!opening.messages.some(({ role }) => role === 'user'))
      throw badRequest('messages: a conversation is routed by its first user message, and has none', 'messages');
    const resolved = await resolve(policy, { ...opening, seed, signal: AbortSignal.timeout(ROUTING_MS) });
    return { policy: resolved.policy, chosen: resolved.routed?.chosen ?? model };
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
  };
}

/** Lists the models that are served. */
export function unknownModel(model: string, { policies }: Served): GatewayError {
  const names = [...policies.keys()].join(', ');
  return new GatewayError(404, `model ${JSON.stringify(model.slice(0, 100))} is not served; there are: ${names}`, {
    param: 'model',
    code: 'model_not_found',
  });
}
