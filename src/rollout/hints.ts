/**
 * Hints. Invariant: a hint is shown to the policy while it samples, and is nowhere else: neither a rollout's messages nor the prompt ids that
 * are trained on hold it, and what is trained on is token for token what the same answers would be without it.
 */
import type { Message } from '../domain/messages';
import type { PolicyClient } from '../policy/client';
import type { TurnRequest } from '../policy/turn';

/** The first messages with the hint below the text of the first system message; without one it becomes one, at the start. */
export function withHint(opening: readonly Message[], hint: string): Message[] {
  const at = opening.findIndex(({ role }) => role === 'system');
  const system = opening[at];
  if (!system) return [{ role: 'system', content: hint }, ...opening];
  return opening.with(at, { role: 'system', content: `${system.content}\n\n${hint}` });
}

/**
 * The ids that an answer to these messages follows. The policy server is asked for a sample of one token: nobody else renders and tokenizes as
 * it does, and a part of a conversation may render otherwise by what stands before it.
 */
export async function promptIdsOf(client: Pick<PolicyClient, 'sample'>, request: TurnRequest): Promise<number[]> {
  const { promptIds } = await client.sample({ ...request, sampling: { ...request.sampling, maxTokens: 1 } });
  return promptIds;
}
