/** A policy's own prompt. Invariant: it changes what the policy sees of the conversation's beginning, and nothing else. */
import type { Message } from '../domain/messages';
import type { Prompt } from '../domain/rollout';

/**
 * The first messages with the prompt in them: `before` puts it above the text of the first system message, `instead` in place of all
 * of them. Without a system message it becomes one, at the start.
 */
export function withPrompt(opening: readonly Message[], prompt: Prompt | undefined): Message[] {
  if (!prompt) return [...opening];
  const at = opening.findIndex(({ role }) => role === 'system');
  const system = opening[at];
  if (!system) return [{ role: 'system', content: prompt.text }, ...opening];
  if (prompt.place === 'before') {
    return opening.with(at, { role: 'system', content: `${prompt.text}\n\n${system.content}` });
  }
  const others = opening.filter(({ role }) => role !== 'system');
  return others.toSpliced(at, 0, { role: 'system', content: prompt.text });
}
