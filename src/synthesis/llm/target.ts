/**
 * The target as prompts tell it: its policy, its tools, what its tools really answer; the same for rollouts in any
 * order.
 */
import type { EnvironmentDescription } from '../../domain/environment';
import type { ScoredRollout } from '../../domain/rollout';
import { cut } from '../../domain/transcript';
import { type Answer, answersIn, jsonOf } from '../../sandbox/conversation';

/** Of the agent's tools; the first ones kept for each tool are of different kinds, as far as there are some. */
const MOST_SAMPLES = 3;
/** The method's constants, as in compacted trajectories. */
const GIVEN_CHARS = 200;
const USER_CHARS = 300;

export function samplesOf(rollouts: readonly ScoredRollout[]): Answer[] {
  const all = new Map<string, Map<string, Answer>>();
  for (const sample of rollouts.flatMap(({ messages }) => answersIn(messages))) {
    const known = all.get(sample.tool) ?? new Map<string, Answer>();
    if (!known.has(sample.content)) known.set(sample.content, sample);
    all.set(sample.tool, known);
  }
  return [...all.keys()].sort().flatMap((tool) => varied([...(all.get(tool)?.values() ?? [])]));
}

/** One of each kind in turn: JSON, an error, other text. */
function varied(samples: readonly Answer[]): Answer[] {
  const kindOf = ({ content }: Answer): string =>
    jsonOf(content) ? 'json' : /^\W*error/i.test(content) ? 'error' : 'text';
  const kinds = ['json', 'text', 'error'].map((kind) => samples.filter((sample) => kindOf(sample) === kind));
  const turns = Array.from({ length: MOST_SAMPLES }, (_, n) => kinds.flatMap((kind) => kind[n] ?? [])).flat();
  return turns.slice(0, MOST_SAMPLES);
}

export const policyText = ({ policy }: EnvironmentDescription): string => policy.trim() || '(none is written down)';

export const toolsText = ({ tools }: EnvironmentDescription): string =>
  tools.map((tool) => JSON.stringify(tool)).join('\n') || '(the target has no tools)';

export function samplesText(samples: readonly Answer[], { most, chars }: { most: number; chars: number }): string {
  const tools = [...new Set(samples.map(({ tool }) => tool))];
  const shown = tools.flatMap((tool) => samples.filter((sample) => sample.tool === tool).slice(0, most));
  return shown
    .map(({ tool, given, content }) => `${tool}(${cut(given, GIVEN_CHARS)})\n=> ${cut(content, chars) || '(empty)'}`)
    .join('\n\n');
}

/** Users' first messages and later ones: `most` of each, from all over the rollouts. */
export function usersText(rollouts: readonly ScoredRollout[], { most }: { most: number }): string {
  const said = rollouts.map(({ messages }) =>
    messages.flatMap(({ role, content }) => (role === 'user' ? [content] : [])),
  );
  const first = said.flatMap(([message]) => message ?? []);
  const later = said.flatMap(([, ...messages]) => messages);
  const listed = (title: string, messages: readonly string[]): string[] => [
    title,
    ...messages.map((message) => `- ${cut(message, USER_CHARS)}`),
  ];
  const spread = (messages: readonly string[]): string[] => {
    const distinct = [...new Set(messages)];
    return distinct.filter((_, n) => n % Math.max(1, Math.floor(distinct.length / most)) === 0).slice(0, most);
  };
  return [...listed('First:', spread(first)), ...listed('Later:', spread(later))].join('\n');
}
