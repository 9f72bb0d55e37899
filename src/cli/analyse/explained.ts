/** What explains a failure. Invariant: a capability does if it is selected and most passes call it LACKING; what no pass looked at has nothing. */
import type { Analysis } from './result';

export const NOT_EXPLAINED = 'not explained by a capability';
export const FAULT = { environment: 'fault of the environment', user: 'fault of the user' } as const;

/** By conversation: selected capabilities, a fault that is not the agent's, or neither. */
export function explanationsOf({
  capabilities,
  failures,
}: Pick<Analysis, 'capabilities' | 'failures'>): (conversation: string) => string | undefined {
  const explanations = new Map(
    failures.flatMap(({ conversation, begins }) => {
      if (!begins) return [];
      if (begins.of !== 'agent') return [[conversation, FAULT[begins.of]]];
      const names = capabilities.flatMap(({ name, selected, lacking }) =>
        selected && lacking.includes(conversation) ? [name] : [],
      );
      return [[conversation, names.join(', ') || NOT_EXPLAINED]];
    }),
  );
  return (conversation) => explanations.get(conversation);
}
