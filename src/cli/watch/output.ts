/** Progress on stdout: a live tree on a terminal, elsewhere one line for each change; with --json one JSON object for each change. */
import { plainText, plainLine } from '../../domain/plain-text';
import { duration, shortName } from '../../report/format';
import { cut, pad, printable, width, wrap } from '../../terminal';
import type { StepStatus } from '../../workflows/messages';
import { failureText, type Snapshot } from './snapshot';
import { BETWEEN, notesOf, Rates, runsText, stateOf, treeLines } from './tree';

/** A time, in ms since the epoch, as `2025-03-01 12:30:59 UTC`. */
export const timeText = (at: number): string => `${new Date(at).toISOString().slice(0, 19).replace('T', ' ')} UTC`;

const marks: Record<StepStatus, { mark: string; code: number }> = {
  waiting: { mark: '·', code: 90 },
  running: { mark: '▸', code: 36 },
  completed: { mark: '✓', code: 32 },
  failed: { mark: '✗', code: 31 },
  cancelled: { mark: '–', code: 33 },
  not_trained: { mark: '✗', code: 33 },
};

export interface Frame {
  snapshot: Snapshot;
  rates: Rates;
  now: number;
  columns: number;
  /** Where Temporal's UI shows this workflow. */
  link?: string | undefined;
  colour?: boolean;
}

/** The share of a terminal's width that labels get. */
const LABELS = 2 / 5;
/** Columns of a mark and of the space around a label. */
const GAPS = 4;

/** Returns the lines of one frame; none is wider than the terminal but the link. */
export function frameLines({ snapshot, rates, now, columns, link, colour = true }: Frame): string[] {
  const { name, startedAt, closedAt, asOf, progress, failure } = snapshot;
  const seed = progress ? [`seed ${progress.seed}`] : [];
  const elapsed = duration(Math.max(0, (closedAt ?? asOf ?? now) - startedAt) / 1000);
  const head = [name, ...seed, `${stateOf(snapshot)} ${elapsed}`].join(BETWEEN);
  const tree = treeLines({ snapshot, rates, now });
  const longest = Math.max(0, ...tree.map(({ label, depth }) => width(plainLine(label)) + 2 * depth));
  const room = Math.min(longest, Math.floor((columns - GAPS) * LABELS));
  const lines = tree.map(({ depth, status, label, detail }) => {
    const { mark, code } = marks[status];
    const named = pad('  '.repeat(depth) + shortName(plainLine(label), room - 2 * depth), room);
    const text = cut(`${mark} ${named}  ${plainLine(detail)}`.trimEnd(), columns);
    if (!colour || process.env['NO_COLOR']) return text;
    const painted = status === 'waiting' ? text.length : mark.length;
    return `\x1b[${code}m${text.slice(0, painted)}\x1b[0m${text.slice(painted)}`;
  });
  const runs = runsText(snapshot, asOf ?? now);
  const notes = [...(runs ? [runs] : []), ...notesOf(snapshot), ...(failure ? [`why: ${failure}`] : [])];
  const below = [
    ...(progress && progress.rollouts.scored + progress.rollouts.broken > 0 ? [countsText(progress)] : []),
    ...notes.flatMap((note) => wrap(plainText(note).replace(/\s+/g, ' '), columns - 2, { cutsWords: true })),
    ...awayLines(snapshot),
  ].map((line) => cut(`  ${line}`, columns));
  return [cut(head, columns), ...lines, ...below, ...(link ? [link] : [])].map((line) => line.trimEnd());
}

/** Capabilities and arms play rollouts of their own, which only the report counts. */
const countsText = ({ rollouts: { scored, broken }, children }: NonNullable<Snapshot['progress']>): string =>
  `${scored} rollouts scored, ${broken} broken${children.length > 0 ? ' (children not counted)' : ''}`;

/** What is missing in the tree while no worker answers, or while workers can't go on. */
function awayLines(snapshot: Snapshot): string[] {
  const { status, progress, progressAt, asOf, failing = [] } = snapshot;
  if (failing.length > 0) return failing.map(failureText);
  if (asOf !== undefined || (progress && progressAt === undefined)) return [];
  const since = progressAt === undefined ? '' : `; finished steps as of ${timeText(progressAt)}`;
  if (status === 'RUNNING') return [`no worker answers: \`campaign run FILE\` starts them${since}`];
  return progress ? [] : ['no worker answers to tell what its stages found'];
}

/** Draws frames in place; what is printed between them stays above. */
class LiveTree {
  private drawn: string[] = [];
  constructor(private readonly out: NodeJS.WriteStream) {}

  draw(lines: string[]): void {
    // More than the terminal has rows cannot be drawn over: the last ones are the ones that matter.
    const shown = [...lines];
    while (shown.length > 1 && this.rowsOf(shown) >= this.out.rows) shown.shift();
    this.out.write(`${this.up()}${shown.join('\n')}\n`);
    this.drawn = shown;
  }

  /** Prints lines above the tree, which is drawn anew below them. */
  print(text: string): void {
    this.out.write(`${this.up()}${plainText(text)}\n`);
    this.drawn = [];
  }

  /** Leaves what is drawn on the screen: it is the last frame. */
  leave(): void {
    this.drawn = [];
  }

  /** To the beginning of what is drawn, wherever the cursor is: a terminal shows a key that is pressed. */
  private up(): string {
    const rows = this.rowsOf(this.drawn);
    return `\r${rows > 0 ? `\x1b[${rows}A` : ''}\x1b[0J`;
  }

  /** A terminal that has become narrower has wrapped what was drawn. */
  private rowsOf(lines: readonly string[]): number {
    const columns = this.out.columns || Infinity;
    return lines.reduce((rows, line) => rows + Math.max(1, Math.ceil(width(line) / columns)), 0);
  }
}

interface ChangeLine {
  time: string;
  campaign: string;
  /** The stage, or `campaign` for the workflow as a whole. */
  stage: string;
  /** The capability or arm, where it is about one. */
  child?: string;
  status: string;
  detail: string;
}

/** A status that changes is reported at once; a detail that grows, every so often. */
const DETAIL_MS = 5000;

export class Changes {
  private readonly reported = new Map<string, { status: string; detail: string; at: number }>();
  private readonly rates = new Rates();

  /** Lines for what is new in this snapshot. */
  since(snapshot: Snapshot, now: number): ChangeLine[] {
    const notes = snapshot.failure ?? notesOf(snapshot).join('; ');
    const whole = { key: 'campaign', depth: 0, status: stateOf(snapshot), label: 'campaign', detail: notes };
    const lines = [whole, ...treeLines({ snapshot, rates: this.rates, now })];
    return lines.flatMap(({ key, depth, status, label, detail }) => {
      const before = this.reported.get(key);
      // What has not begun has not changed.
      if (!before && status === 'waiting') return [];
      if (before?.status === status && (before.detail === detail || now - before.at < DETAIL_MS)) return [];
      this.reported.set(key, { status, detail, at: now });
      const about = depth === 0 ? { stage: key } : { stage: 'capabilities', child: label };
      return [{ time: new Date(now).toISOString(), campaign: snapshot.name, ...about, status, detail }];
    });
  }
}

export interface ProgressOutput {
  /** Something that happened beside the campaign itself: a service started, died, was stopped. `facts` are for programs alone. */
  note(stage: string, detail: string, facts?: object): void;
  show(snapshot: Snapshot): void;
  /** Where Temporal's UI shows the campaign. */
  link?: string;
}

export const isTerminal = (out: NodeJS.WriteStream = process.stdout): boolean => out.isTTY === true;

/** `campaign` is named in every JSON line. */
export function createProgressOutput({
  json,
  campaign,
  out = process.stdout,
}: {
  json?: boolean | undefined;
  campaign?: string | undefined;
  out?: NodeJS.WriteStream;
}): ProgressOutput {
  if (isTerminal(out) && !json) {
    const tree = new LiveTree(out);
    const rates = new Rates();
    const output: ProgressOutput = {
      note: (_stage, detail) => tree.print(detail),
      show: (snapshot) => {
        tree.draw(frameLines({ snapshot, rates, now: Date.now(), columns: out.columns || 80, link: output.link }));
        if (snapshot.status !== 'RUNNING' || snapshot.asOf !== undefined) tree.leave();
      },
    };
    return output;
  }
  const changes = new Changes();
  const write = (line: ChangeLine | (Omit<ChangeLine, 'campaign' | 'status'> & { campaign?: string })): void =>
    void out.write(`${printable(json ? JSON.stringify(line) : plainChange(line))}\n`);
  return {
    note: (stage, detail, facts) =>
      write({ time: new Date().toISOString(), ...(campaign && { campaign }), stage, detail, ...facts }),
    show: (snapshot) => changes.since(snapshot, Date.now()).forEach(write),
  };
}

/** `12:30:59 capabilities ask_for_identifier running: step 12/24`; facts are for programs. */
function plainChange({
  time,
  stage,
  detail,
  ...line
}: Pick<ChangeLine, 'time' | 'stage' | 'detail'> & Partial<ChangeLine>) {
  const { child, status } = line;
  const about = [time.slice(11, 19), stage, child, status].filter(Boolean).join(' ');
  return detail ? `${about}: ${plainText(detail)}` : about;
}
