/** Policies that never read what they are told: no environment may reward them. Each is one script for all seeds. */
import type { AssistantMessage, ToolSchema } from '../domain/messages';
import type { ScriptedEpisode, Script } from './scripted-episode';
import { vocabularyOf } from './vocabulary';

const say = (content: string): AssistantMessage => ({ role: 'assistant', content });
const MOST_TEXTS = 8;

/**
 * Do nothing, submit at once or say one of the most frequent texts of the solutions (denial, question, closing), call one tool over and
 * over.
 */
export function trivialPolicies(o: {
  tools: readonly ToolSchema[];
  solved: readonly ScriptedEpisode[];
}): { name: string; script: Script }[] {
  const texts = frequent(
    o.solved.flatMap(({ messages }) =>
      messages.flatMap((m) => (m.role === 'assistant' && m.content ? [m.content] : [])),
    ),
  );
  const calls = o.tools.map((tool) => ({ name: tool.name, message: callOf(tool) }));
  const [closing = 'done .'] = texts;
  return [
    { name: 'doing nothing', script: [] },
    { name: 'an empty message', script: [say('')] },
    ...texts.map((text) => ({ name: `always saying "${text}"`, script: [say(text), say(text)] })),
    ...calls.map(({ name, message }) => ({
      name: `calling ${name} over and over`,
      script: [message, message, message, message, say(closing)],
    })),
  ];
}

function frequent(texts: readonly string[]): string[] {
  const counts = new Map<string, number>();
  for (const text of texts) counts.set(text, (counts.get(text) ?? 0) + 1);
  const ranked = [...counts].sort(([a, n], [b, m]) => m - n || (a < b ? -1 : 1));
  return ranked.slice(0, MOST_TEXTS).map(([text]) => text);
}

/** A call with the first value that each argument's schema allows; free text is left empty. */
function callOf(tool: ToolSchema): AssistantMessage {
  const given = Object.entries(tool.parameters.properties ?? {}).map(([name, schema]) => {
    const { number, parts } = vocabularyOf(schema) ?? { number: false, parts: [] };
    const text = parts.map(([option]) => option).join('');
    return [name, number ? Number(text) : text];
  });
  return {
    role: 'assistant',
    content: '',
    toolCalls: [{ id: 'call_0', name: tool.name, arguments: Object.fromEntries(given) }],
  };
}
