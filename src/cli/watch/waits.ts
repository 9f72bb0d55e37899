/** What waits for a person, in the tree. Invariant: how long it has waited is rounded, so that it is no news at every look. */
import { waitingText, type Waiting } from '../../domain/approval';

const MINUTE = 60_000;

/** Empty where nothing waits. */
export const waitsFor = (campaign: string, waiting: Waiting | undefined, now: number): string =>
  waiting ? waitingText({ waiting, campaign, since: sinceText(now - waiting.since) }) : '';

/** `since 20 min`, `since 2 h`, `since 3 days`; empty for what has just begun. */
export function sinceText(ms: number): string {
  const minutes = Math.floor(ms / (5 * MINUTE)) * 5;
  if (minutes < 5) return '';
  if (minutes < 60) return `since ${minutes} min`;
  const hours = Math.floor(ms / (60 * MINUTE));
  return hours < 48 ? `since ${hours} h` : `since ${Math.floor(hours / 24)} days`;
}
