/** Progress on stdout: one line for each change; with --json one JSON object for each change. `status` prints the whole tree. */
import { plainText, plainLine } from '../../domain/plain-text';
import { duration, timeText } from '../../report/format';
import { cut, pad, printable, width, wrap } from '../../terminal';
import type { StepStatus } from '../../workflows/messages';
import { failureText, type Snapshot } from './snapshot';
import { BETWEEN, notesOf, stateOf, treeLines } from './tree';

const marks: Record<StepStatus, { mark: string; code: number }> = {
  waiting: { mark: '·', code: 90 },
  running: { mark: '▸', code: 36 },
  completed: { mark: '✓', code: 32 },
  failed: { mark: '✗', code: 31 },
  cancelled: { mark: '–', code: 33 },
  not_trained: { mark: '✗', code: 33 },
};

/** Colours a status on a terminal, unless NO_COLOR is set. */
const paint = (status: string): string =>
  status in marks && process.stdout.isTTY && process.stdout.hasColors()
    ? `\x1b[${marks[status as StepStatus].code}m${status}\x1b[0m`
    : status;

/** Returns the tree of a campaign; no line is wider than `columns`. */
export function frameLines({ snapshot, now, columns }: { snapshot: Snapshot; now: number; columns: number }): string[] {
  const { name, startedAt, closedAt, asOf, progress, failure } = snapshot;
  const seed = progress ? [`seed ${progress.seed}`] : [];
  const elapsed = duration(Math.max(0, (closedAt ?? asOf ?? now) - startedAt) / 1000);
  const head = [name, ...seed, `${stateOf(snapshot)} ${elapsed}`].join(BETWEEN);
  const rows = treeLines(snapshot, now).map((line) => ({
    ...line,
    label: '  '.repeat(line.depth) + plainLine(line.label),
  }));
  const room = Math.max(0, ...rows.map(({ label }) => width(label)));
  const lines = rows.map(({ status, label, detail }) =>
    cut(`${marks[status].mark} ${pad(label, room)}  ${plainLine(detail)}`.trimEnd(), columns),
  );
  const notes = [...notesOf(snapshot), ...(failure ? [`why: ${failure}`] : [])];
  const below = [
    ...(progress && progress.rollouts.scored + progress.rollouts.broken > 0 ? [countsText(progress)] : []),
    ...notes.flatMap((note) => wrap(plainText(note).replace(/\s+/g, ' '), columns - 2, { cutsWords: true })),
    ...awayLines(snapshot),
  ].map((line) => cut(`  ${line}`, columns));
  return [cut(head, columns), ...lines, ...below];
}

/** Capabilities and baselines play rollouts of their own, which only the report counts. */
const countsText = ({ rollouts: { scored, broken }, children }: NonNullable<Snapshot['progress']>): string =>
  `${scored} rollouts scored, ${broken} failed${children.length > 0 ? ' (children not counted)' : ''}`;

/** Explains why the tree is out of date: no worker answers, or the workflow code fails. */
function awayLines({ status, progress, progressAt, asOf, failing = [] }: Snapshot): string[] {
  if (failing.length > 0) return failing.map(failureText);
  if (status !== 'RUNNING' || asOf !== undefined || (progress && progressAt === undefined)) return [];
  const since = progressAt === undefined ? '' : `; finished steps as of ${timeText(progressAt)}`;
  return [`no worker answers: \`campaign run FILE\` starts them${since}`];
}

interface ChangeLine {
  time: string;
  campaign: string;
  /** The stage, or `campaign` for the workflow as a whole. */
  stage: string;
  /** The capability or baseline, where it is about one. */
  child?: string;
  status: string;
  detail: string;
}

/** A status that changes is reported at once; a detail that grows, every so often. */
const DETAIL_MS = 5000;

export class Changes {
  private readonly reported = new Map<string, { status: string; detail: string; at: number }>();

  /** Lines for what is new in this snapshot. */
  since(snapshot: Snapshot, now: number): ChangeLine[] {
    const notes = snapshot.failure ?? notesOf(snapshot).join('; ');
    const whole = { key: 'campaign', depth: 0, status: stateOf(snapshot), label: 'campaign', detail: notes };
    const lines = [whole, ...treeLines(snapshot, now)];
    return lines.flatMap(({ key, depth, status, label, detail }) => {
      const before = this.reported.get(key);
      // A step that has not started is not reported.
      if (!before && status === 'waiting') return [];
      if (before?.status === status && (before.detail === detail || now - before.at < DETAIL_MS)) return [];
      this.reported.set(key, { status, detail, at: now });
      const about = depth === 0 ? { stage: key } : { stage: 'capabilities', child: label };
      return [{ time: new Date(now).toISOString(), campaign: snapshot.name, ...about, status, detail }];
    });
  }
}

export interface ProgressOutput {
  /** Reports an event outside the campaign: a service started, died or was stopped. `facts` are for JSON output only. */
  note(stage: string, detail: string, facts?: object): void;
  show(snapshot: Snapshot): void;
}

/** `campaign` is named in every JSON line. */
export function createProgressOutput(o: { json?: boolean | undefined; campaign?: string | undefined }): ProgressOutput {
  const { json, campaign } = o;
  const changes = new Changes();
  const write = (line: Omit<ChangeLine, 'campaign' | 'status'> & Partial<ChangeLine>): void =>
    void process.stdout.write(`${json ? printable(JSON.stringify(line)) : plainChange(line)}\n`);
  return {
    note: (stage, detail, facts) =>
      write({ time: new Date().toISOString(), ...(campaign && { campaign }), stage, detail, ...facts }),
    show: (snapshot) => changes.since(snapshot, Date.now()).forEach(write),
  };
}

/** `12:30:59 capabilities ask_for_identifier running: step 12/24`; facts are for programs. */
function plainChange({ time, stage, detail, child = '', status = '' }: Partial<ChangeLine> & Pick<ChangeLine, 'time'>) {
  const about = [time.slice(11, 19), stage, printable(child), paint(status)].filter(Boolean).join(' ');
  return detail ? `${about}: ${printable(detail)}` : about;
}
