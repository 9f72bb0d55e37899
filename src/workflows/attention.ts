/** What of a workflow needs a person, and how it ended: for Temporal's lists, which alone can be read without a worker. */
import { isCancellation, upsertSearchAttributes } from '@temporalio/workflow';
import { defineSearchAttributeKey } from '@temporalio/common';
import { waitingText, type Waiting } from '../domain/approval';
import { searchAttributeNames, type Need, type Trouble } from './messages';
import type { PauseGate } from './pause';
import { watchSteps } from './trying';

const attentionAttribute = defineSearchAttributeKey(searchAttributeNames.attention, 'KEYWORD');
const outcomeAttribute = defineSearchAttributeKey(searchAttributeNames.outcome, 'KEYWORD');

export class Attention {
  private readonly steps = new Map<object, Trouble>();
  private shown: string | null = null;

  /** Hears of all steps of this workflow. `onChange` is called when there is more or less to show. */
  watch(gate: PauseGate, onChange: () => void): void {
    watchSteps({
      gate,
      onTrouble: (step, trouble) => {
        if (trouble) this.steps.set(step, trouble);
        else this.steps.delete(step);
        onChange();
      },
    });
  }

  get troubles(): Trouble[] {
    return [...this.steps.values()];
  }

  /** The oldest of what its steps need and of `others`, which Temporal shows from now on. */
  show(others: readonly (Need | undefined)[]): Need | undefined {
    const own = this.troubles.flatMap(({ needsPerson, type, since, title, reason }) =>
      needsPerson ? [{ what: type, since, text: `${title}: ${reason}` }] : [],
    );
    const [oldest] = [...own, ...others.flatMap((one) => one ?? [])].sort((a, b) => a.since - b.since);
    const what = oldest?.what ?? null;
    if (what !== this.shown) upsertSearchAttributes([{ key: attentionAttribute, value: what }]);
    this.shown = what;
    return oldest;
  }
}

/** Runs a workflow, and shows how it ended; what has ended needs nobody. */
export async function withOutcome<R extends { status: string }>(run: () => Promise<R>): Promise<R> {
  const show = (outcome: string) =>
    upsertSearchAttributes([
      { key: outcomeAttribute, value: outcome },
      { key: attentionAttribute, value: null },
    ]);
  try {
    const result = await run();
    show(result.status);
    return result;
  } catch (error) {
    show(isCancellation(error) ? 'cancelled' : 'failed');
    throw error;
  }
}

/** By the workflow's clock: what is shown in Temporal's UI does not count on. */
export const sinceText = ({ since }: { since: number }): string =>
  `since ${new Date(since).toISOString().slice(0, 16).replace('T', ' ')} UTC`;

/** What waits for approval says so itself. */
export const needText = (need: Need): string =>
  need.what === APPROVAL ? need.text : `needs attention, ${need.what}, ${sinceText(need)}: ${need.text}`;

const APPROVAL = 'approval';

export const approvalNeed = (waiting: Waiting, campaign: string): Need => {
  const { since } = waiting;
  return { what: APPROVAL, since, text: waitingText({ waiting, campaign, since: sinceText(waiting) }) };
};
