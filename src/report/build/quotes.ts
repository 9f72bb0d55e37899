/**
 * What a report quotes: trajectories, and what changed from one version of a module to the next. Invariants: a quote is the message as it stands in the
 * batch; what is too long is cut, and how much is missing is said; nothing in a difference moves a cursor or turns the direction of writing.
 */
import type { ArtifactStore } from '../../artifacts/store';
import type { ArtifactRef } from '../../domain/artifacts';
import { callText, type Message } from '../../domain/messages';
import type { ReportedCitation, ReportedEpisode, ReportedMessage } from '../capability-model';
import { isSuccess, type ScoredRollout } from '../../domain/rollout';
import { readRollouts } from '../../rollout/read';
import { structuredPatch } from 'diff';
import { visible } from '../format';

/** Characters of a quoted message, and messages of an episode. */
const LONGEST = 8000;
const LONGEST_EPISODE = 40;

type Trajectory = Pick<ScoredRollout, 'key' | 'task' | 'attempt' | 'messages' | 'reward'>;

/** The labeled rollouts: how many there are by outcome, and those that are quoted. */
export interface Labeled {
  failed: number;
  passed: number;
  quoted: ReadonlyMap<string, ScoredRollout>;
}

export async function readLabeled(o: {
  store: ArtifactStore;
  ref: ArtifactRef;
  /** Keys of the rollouts that are quoted. */
  quoted: ReadonlySet<string>;
}): Promise<Labeled> {
  const { store, ref, quoted } = o;
  const counts = { failed: 0, passed: 0 };
  const found = new Map<string, ScoredRollout>();
  for await (const rollout of readRollouts({ store, ref })) {
    if (rollout.status !== 'scored') continue;
    counts[outcomeOf(rollout)] += 1;
    if (quoted.has(rollout.key)) found.set(rollout.key, rollout);
  }
  return { ...counts, quoted: found };
}

export const outcomeOf = (rollout: ScoredRollout): 'failed' | 'passed' => (isSuccess(rollout) ? 'passed' : 'failed');

/** Which trajectory it is; of one that is not among the labeled ones, its key alone. */
export function trajectoryOf(
  rollout: string,
  { quoted }: Labeled,
): Pick<ReportedCitation, 'rollout' | 'task' | 'attempt' | 'outcome'> {
  const found = quoted.get(rollout);
  return found ? { rollout, task: found.task, attempt: found.attempt, outcome: outcomeOf(found) } : { rollout };
}

/** A step with the messages before and after it. */
export function citationOf(
  { rollout, message, says }: { rollout: string; message?: number | undefined; says: string },
  labeled: Labeled,
): ReportedCitation {
  return {
    ...trajectoryOf(rollout, labeled),
    ...(message !== undefined && { message }),
    says,
    context: message === undefined ? [] : around(labeled.quoted.get(rollout)?.messages ?? [], message),
  };
}

function around(messages: Trajectory['messages'], at: number): ReportedMessage[] {
  if (at >= messages.length) return [];
  const first = Math.max(0, at - 1);
  return messages.slice(first, at + 2).map((message, n) => quotedMessage(message, first + n));
}

/** A rollout as an example: its beginning. */
export function episodeOf(rollout: ScoredRollout): ReportedEpisode {
  const { key, task, reward, stopReason, hinted, messages } = rollout;
  const missing = messages.length - LONGEST_EPISODE;
  return {
    rollout: key,
    task,
    outcome: outcomeOf(rollout),
    reward,
    stopReason,
    ...(hinted && { hinted }),
    messages: messages.slice(0, LONGEST_EPISODE).map((message, n) => quotedMessage(message, n)),
    ...(missing > 0 && { missing }),
  };
}

export function quotedMessage(message: Message, index: number, longest = LONGEST): ReportedMessage {
  const calls = 'toolCalls' in message ? (message.toolCalls ?? []) : [];
  const text = [message.content, ...calls.map((call) => `calls ${callText(call)}`)]
    .filter((part) => part !== '')
    .join('\n');
  const kept = text.slice(0, longest);
  const missing = text.length - kept.length;
  return { message: index, role: message.role, text: kept, ...(missing > 0 && { missing }) };
}

/** Unchanged lines around a change. */
const CONTEXT = 3;
/** Versions with more changed lines are not compared: it would take seconds, and nobody reads it. */
const MOST_CHANGES = 2000;
/** Characters of a line: generated modules hold their data on one. */
const LINE = 1000;

interface Diff {
  added: number;
  removed: number;
  /** As of `diff -u`, without the names of files: `@@ -1,4 +1,5 @@`, then lines that begin with `+`, `-` or a space. */
  lines: string[];
}

/** Undefined where the versions have too little in common to be compared. */
export function diffOf({ before, after }: { before: string; after: string }): Diff | undefined {
  const options = { context: CONTEXT, maxEditLength: MOST_CHANGES };
  const patch = structuredPatch('', '', before, after, undefined, undefined, options);
  if (!patch) return undefined;
  const lines = patch.hunks.flatMap((hunk) => [
    `@@ -${hunk.oldStart},${hunk.oldLines} +${hunk.newStart},${hunk.newLines} @@`,
    ...hunk.lines.map(shown),
  ]);
  const count = (sign: string): number =>
    patch.hunks.reduce((sum, hunk) => sum + hunk.lines.filter((line) => line.startsWith(sign)).length, 0);
  return { added: count('+'), removed: count('-'), lines };
}

const shown = (line: string): string =>
  visible(line.length > LINE ? `${line.slice(0, LINE)}… (${line.length - LINE} more characters)` : line);
