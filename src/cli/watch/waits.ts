/** What waits for a person, in the tree. Invariant: how long it has waited is rounded, so that it is no news at every look. */
import { waitingText, type Waiting } from '../../domain/approval';
import type { Snapshot } from './snapshot';

/** What a running campaign needs a person for: as its workers tell it, else as the server knows it. What waits for approval has said so in its line. */
export function attentionText({ status, attention, progress, progressAt }: Snapshot, now: number): string {
  if (status !== 'RUNNING' || !attention) return '';
  const need = progressAt === undefined ? progress?.need : undefined;
  if (!need) return `needs attention: ${attention}`;
  if (need.what === 'approval') return '';
  return `${['needs attention', sinceText(now - need.since)].filter(Boolean).join(' ')}: ${need.what}: ${need.text}`;
}

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
