/** What a policy did, whatever it was told: where every conversation is the same, outcomes say nothing about the policy. */
import type { Selection } from './capability';
import { callText, type AssistantMessage, type Message } from './messages';

/** What the agent said and called, in order; without ids and without white space that means nothing. */
export const behaviourOf = (messages: readonly Message[]): string =>
  messages
    .filter((message): message is AssistantMessage => message.role === 'assistant')
    .map(({ content, toolCalls = [] }) => [words(content), ...toolCalls.map(callText)].filter(Boolean).join(' '))
    .join(' / ');

const words = (text: string): string => text.split(/\s+/).filter(Boolean).join(' ');

/** The one behaviour of several conversations; undefined where they differ, or are fewer than two. */
export function onlyBehaviour(conversations: readonly { messages: readonly Message[] }[]): string | undefined {
  if (conversations.length < 2) return undefined;
  const [first, ...others] = new Set(conversations.map(({ messages }) => behaviourOf(messages)));
  return others.length > 0 ? undefined : first;
}

const LONGEST = 120;

/** A behaviour as part of a sentence after "all of them". */
export const said = (behaviour: string): string =>
  behaviour === ''
    ? 'say nothing at all'
    : `say the same: ${JSON.stringify(behaviour.length <= LONGEST ? behaviour : `${behaviour.slice(0, LONGEST)}…`)}`;

/** Where every trajectory is the same, outcomes tell of the tasks alone: nothing is selected, whatever the analyst says. */
export function requireDifference(
  selection: Selection,
  trajectories: readonly { messages: readonly Message[] }[],
): Selection {
  const behaviour = onlyBehaviour(trajectories);
  if (behaviour === undefined) return selection;
  return {
    ...selection,
    capabilities: selection.capabilities.map((capability) => ({ ...capability, selected: false })),
    reason:
      `all ${trajectories.length} base rollouts ${said(behaviour)}: what succeeds among them does so by its task alone, which tells no ` +
      "capability; take a base that works on the target's tasks",
  };
}
