/**
 * What a report quotes: conversations, and modules with what changed in them. Invariants: a quote is the text as it stands in the artifact; what
 * is too long is cut, and how much is missing is said; nothing in a difference moves a cursor or turns the direction of writing.
 */
import { structuredPatch } from 'diff';
import type { ArtifactStore } from '../../artifacts/store';
import type { ArtifactRef } from '../../domain/artifacts';
import { callText, type Message } from '../../domain/messages';
import { isSuccess, type Rollout, type ScoredRollout } from '../../domain/rollout';
import { readRollouts } from '../../rollout/read';
import type { ReportedCitation, ReportedEpisode, ReportedMessage, ReportedVersion } from '../capability-model';
import { visible } from '../format';

/** Characters of a quoted message, and messages of an episode. */
const LONGEST = 8000;
const LONGEST_EPISODE = 40;

interface Stored {
  store: ArtifactStore;
  ref: ArtifactRef;
}

/** The labeled rollouts: how many there are by outcome, and those that are quoted. */
export interface Labeled {
  failed: number;
  passed: number;
  quoted: ReadonlyMap<string, ScoredRollout>;
}

export type Rollouts = AsyncIterable<Rollout> | Iterable<Rollout>;

/** `keys`: of the rollouts that are quoted. */
export async function labeledOf(rollouts: Rollouts, keys: ReadonlySet<string>): Promise<Labeled> {
  const counts = { failed: 0, passed: 0 };
  const quoted = new Map<string, ScoredRollout>();
  for await (const rollout of rollouts) {
    if (rollout.status !== 'scored') continue;
    counts[outcomeOf(rollout)] += 1;
    if (keys.has(rollout.key)) quoted.set(rollout.key, rollout);
  }
  return { ...counts, quoted };
}

const outcomeOf = (rollout: ScoredRollout): 'failed' | 'passed' => (isSuccess(rollout) ? 'passed' : 'failed');

/** Which trajectory it is; of one that is not among the labeled ones, its key alone. */
export function trajectoryOf(
  rollout: string,
  { quoted }: Labeled,
): Pick<ReportedCitation, 'rollout' | 'task' | 'attempt' | 'outcome'> {
  const known = quoted.get(rollout);
  return known ? { rollout, task: known.task, attempt: known.attempt, outcome: outcomeOf(known) } : { rollout };
}

/** A step with the messages before and after it. */
export function citationOf(
  { rollout, message, says }: { rollout: string; message?: number | undefined; says: string },
  labeled: Labeled,
): ReportedCitation {
  const context = excerpt(labeled.quoted.get(rollout)?.messages ?? [], message);
  return { ...trajectoryOf(rollout, labeled), message, says, context };
}

/** A message and its neighbours; nothing of one that is not there. */
export function excerpt(
  messages: readonly Message[],
  around: number | undefined,
  { neighbours = 1, longest = LONGEST } = {},
): ReportedMessage[] {
  if (around === undefined || around >= messages.length) return [];
  const first = Math.max(0, around - neighbours);
  return messages.slice(first, around + neighbours + 1).map((message, n) => quotedMessage(message, first + n, longest));
}

/** The first conversations of each kind, at most `each`; the kinds as they come, after those that are in `kinds`. */
async function firstOfEachKind(
  batch: Stored,
  { kindOf, each, kinds = [] }: { kindOf: (rollout: ScoredRollout) => string; each: number; kinds?: string[] },
): Promise<ScoredRollout[][]> {
  const first = new Map(kinds.map((kind) => [kind, [] as ScoredRollout[]]));
  for await (const rollout of readRollouts(batch)) {
    if (rollout.status !== 'scored' || rollout.messages.length === 0) continue;
    const kind = kindOf(rollout);
    const known = first.get(kind) ?? [];
    if (known.length < each) first.set(kind, [...known, rollout]);
  }
  return [...first.values()];
}

/** A failure and a success, the first of each. */
export const episodesByOutcome = async (batch: Stored): Promise<ReportedEpisode[]> =>
  (await firstOfEachKind(batch, { kindOf: outcomeOf, each: 1 })).flat().map(episodeOf);

const EPISODES = 3;

/** A success, a failure and one that ended otherwise, the first of each; where there are fewer kinds, more of them in turn. */
export async function variousEpisodes(batch: Stored): Promise<ReportedEpisode[]> {
  const kindOf = (rollout: ScoredRollout) =>
    isSuccess(rollout) ? 'success' : rollout.reward > 0 ? 'in part' : rollout.stopReason;
  const kinds = await firstOfEachKind(batch, { kindOf, each: EPISODES, kinds: ['success'] });
  const inTurn = Array.from({ length: EPISODES }, (_, n) => kinds.flatMap((known) => known[n] ?? []));
  return inTurn.flat().slice(0, EPISODES).map(episodeOf);
}

/** A rollout as an example: its beginning. */
function episodeOf(rollout: ScoredRollout): ReportedEpisode {
  const { key, task, reward, stopReason, hinted, messages } = rollout;
  return {
    rollout: key,
    task,
    outcome: outcomeOf(rollout),
    reward,
    stopReason,
    hinted,
    messages: messages.slice(0, LONGEST_EPISODE).map((message, n) => quotedMessage(message, n)),
    missing: missing(messages.length - LONGEST_EPISODE),
  };
}

export function quotedMessage(message: Message, index: number, longest = LONGEST): ReportedMessage {
  const calls = 'toolCalls' in message ? (message.toolCalls ?? []) : [];
  const text = [message.content, ...calls.map((call) => `calls ${callText(call)}`)].filter(Boolean).join('\n');
  return {
    message: index,
    role: message.role,
    text: text.slice(0, longest),
    missing: missing(text.length - longest),
  };
}

const missing = (length: number): number | undefined => (length > 0 ? length : undefined);

/** The last line of a module that was written: why training there should transfer. */
const RATIONALE = /\n\/\/ Rationale: ([^\n]*)\n*$/;

/** `previous`: the module of the round before. */
export async function versionOf(
  store: ArtifactStore,
  module: ArtifactRef,
  previous: ArtifactRef | undefined,
): Promise<ReportedVersion> {
  const read = async (ref: ArtifactRef) => (await store.read(ref)).toString('utf8');
  const text = await read(module);
  const source = text.replace(RATIONALE, '\n');
  const before = previous && (await read(previous)).replace(RATIONALE, '\n');
  const changes = before === undefined ? undefined : diffOf({ before, after: source });
  return {
    module,
    lines: source.split('\n').length - 1,
    rationale: RATIONALE.exec(text)?.[1],
    changes: changes && {
      ...changes,
      lines: changes.lines.slice(0, LONGEST_DIFF),
      missing: missing(changes.lines.length - LONGEST_DIFF),
    },
  };
}

/** Lines of a difference that are shown. */
const LONGEST_DIFF = 1500;
/** Unchanged lines around a change. */
const CONTEXT = 3;
/** Versions with more changed lines are not compared: it would take seconds, and nobody reads it. */
const MOST_CHANGES = 2000;
/** Characters of a line: generated modules hold their data on one. */
const LONGEST_LINE = 1000;

/** As of `diff -u`, without the names of files. Undefined where the versions have too little in common to be compared. */
export function diffOf(o: { before: string; after: string }): NonNullable<ReportedVersion['changes']> | undefined {
  const options = { context: CONTEXT, maxEditLength: MOST_CHANGES };
  const patch = structuredPatch('', '', o.before, o.after, undefined, undefined, options);
  if (!patch) return undefined;
  const changed = patch.hunks.flatMap(({ lines }) => lines);
  const count = (sign: string): number => changed.filter((line) => line.startsWith(sign)).length;
  const lines = patch.hunks.flatMap((hunk) => [
    `@@ -${hunk.oldStart},${hunk.oldLines} +${hunk.newStart},${hunk.newLines} @@`,
    ...hunk.lines.map(shortLine),
  ]);
  return { added: count('+'), removed: count('-'), lines };
}

function shortLine(line: string): string {
  const more = line.length - LONGEST_LINE;
  return visible(more > 0 ? `${line.slice(0, LONGEST_LINE)}… (${more} more characters)` : line);
}
