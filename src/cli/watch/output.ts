/** Progress on stdout: a live tree on a terminal, elsewhere one JSON object for each change. */
import type { CampaignProgress, StepStatus } from '../../workflows/messages';
import { shortName } from '../../report/format';
import { cut, plain, wrap } from '../../terminal';
import { failuresIn, failureText } from './follow';
import { attentionText, brokenText, Rates, stateOf, type TreeLine, treeLines } from './tree';
import type { Snapshot } from './snapshot';

/** Seconds as `45s`, `3m12s` or `2h05m`. */
export function durationText(seconds: number): string {
  const total = Math.max(0, Math.round(seconds));
  const [hours, minutes, rest] = [Math.floor(total / 3600), Math.floor(total / 60) % 60, total % 60];
  if (hours > 0) return `${hours}h${String(minutes).padStart(2, '0')}m`;
  return minutes > 0 ? `${minutes}m${String(rest).padStart(2, '0')}s` : `${rest}s`;
}

/** A time, in ms since the epoch, as `2025-03-01 12:30:59 UTC`. */
export const timeText = (at: number): string => `${new Date(at).toISOString().slice(0, 19).replace('T', ' ')} UTC`;

const marks: Record<StepStatus, { mark: string; code: number }> = {
  waiting: { mark: '·', code: 90 },
  running: { mark: '▸', code: 36 },
  done: { mark: '✓', code: 32 },
  failed: { mark: '✗', code: 31 },
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

/** The lines of one frame; none is wider than the terminal but the link, which is of no use when it is cut. */
export function frameLines({ snapshot, rates, now, columns, link, colour = true }: Frame): string[] {
  const { progress, failure } = snapshot;
  const until = snapshot.closedAt ?? snapshot.asOf ?? now;
  const elapsed = durationText((until - snapshot.startedAt) / 1000);
  const head = [snapshot.name, progress ? `seed ${progress.seed}` : '', `${stateOf(snapshot)} ${elapsed}`]
    .filter(Boolean)
    .join(' · ');
  const tree = treeLines({ snapshot, rates, now }).map((line) => ({
    ...line,
    label: plain(line.label),
    detail: plain(line.detail),
  }));
  const width = labelWidth(tree, columns);
  const lines = tree.map(({ depth, status, label, detail }) => {
    const { mark, code } = marks[status];
    const name = `${'  '.repeat(depth)}${shortName(label, width - 2 * depth)}`.padEnd(width);
    const text = cut(`${mark} ${name}  ${fitted(detail, columns - width - GAPS)}`.trimEnd(), columns);
    if (!colour) return text;
    return paint(text, code, status === 'waiting' ? text.length : mark.length);
  });
  const counts = progress ? [cut(`  ${countsText(progress)}`, columns)] : [];
  const needs = attentionText(snapshot, snapshot.asOf ?? now);
  const notes = [needs, brokenText(snapshot), failure ? `why: ${failure}` : ''].filter(Boolean);
  const why = notes.flatMap((note) =>
    wrap(plain(note).replace(/\s+/g, ' '), columns - 2, { cutsWords: true }).map((line) => `  ${line}`),
  );
  const away = awayLines(snapshot).map((line) => cut(line, columns));
  return [cut(head, columns), ...lines, ...counts, ...why, ...away, ...(link ? [link] : [])].map((line) =>
    line.trimEnd(),
  );
}

/** Around a label: its mark, and what parts it from the detail. */
const GAPS = 4;
/** The longest name of a stage. */
const LEAST_LABEL = 12;
/** What is left of a title at least, and of what stands after the counts. */
const LEAST_WORDS = 4;

/** As wide as the longest label, but for what the counts beside them need. */
function labelWidth(tree: readonly TreeLine[], columns: number): number {
  const longest = Math.max(0, ...tree.map(({ label, depth }) => label.length + 2 * depth));
  const counts = Math.max(0, ...tree.map(({ detail }) => moving(partsOf(detail)).join(BETWEEN).length));
  return Math.min(longest, Math.max(LEAST_LABEL, columns - GAPS - counts));
}

const BETWEEN = ' · ';
const partsOf = (detail: string): string[] => detail.split(BETWEEN);
/** Counts, rates and rewards: what somebody who watches looks for. */
const moving = (parts: readonly string[]): string[] => parts.filter((part) => /\d\/(\d+|s)$|^reward /.test(part));

/** Where there is little room, what moves goes first, and of it names are cut before counts. */
function fitted(detail: string, room: number): string {
  if (detail.length <= room) return detail;
  const parts = partsOf(detail);
  const first = moving(parts);
  if (first.length === 0) return detail;
  const others = parts.filter((part) => !first.includes(part));
  const excess = first.join(BETWEEN).length - room;
  const counts = first.map((part) => {
    const [, title = '', count] = /^(.+)( \d+\/\d+)$/.exec(part) ?? [];
    return count && excess > 0 ? shortName(title, Math.max(LEAST_WORDS, title.length - excess)) + count : part;
  });
  const text = counts.join(BETWEEN);
  const left = room - text.length - BETWEEN.length;
  return left < LEAST_WORDS || others.length === 0 ? text : text + BETWEEN + cut(others.join(BETWEEN), left);
}
/** Capabilities and arms play rollouts of their own, which only the report counts. */
function countsText({ rollouts: { scored, broken }, children }: CampaignProgress): string {
  const without = children.length > 0 ? ' (children not counted)' : '';
  return `${scored} rollouts scored, ${broken} broken${without}`;
}

/** What is missing in the tree while no worker answers, or while workers can't go on. */
function awayLines(snapshot: Snapshot): string[] {
  const failing = failuresIn(snapshot);
  if (failing.length > 0) return failing.map((one) => `  ${failureText(one)}`);
  const { status, progress, progressAt, asOf } = snapshot;
  if (asOf !== undefined || (progress && progressAt === undefined)) return [];
  const since = progressAt === undefined ? '' : `; finished steps as of ${timeText(progressAt)}`;
  if (status === 'RUNNING') return [`  no worker answers: \`campaign run FILE\` starts them${since}`];
  return progress ? [] : ['  no worker answers to tell what its stages found'];
}

/** Draws frames in place; what is printed between them stays above. */
export class LiveTree {
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
    this.out.write(`${this.up()}${plain(text)}\n`);
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
    return lines.reduce((rows, line) => rows + Math.max(1, Math.ceil(plain(line).length / columns)), 0);
  }
}

/** Colours the first `length` characters. */
function paint(text: string, code: number, length = text.length): string {
  return `\x1b[${code}m${text.slice(0, length)}\x1b[0m${text.slice(length)}`;
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
  constructor(private readonly rates: Rates) {}

  /** Lines for what is new in this snapshot. */
  since(snapshot: Snapshot, now: number): ChangeLine[] {
    const detail = snapshot.failure ?? [attentionText(snapshot, now), brokenText(snapshot)].filter(Boolean).join('; ');
    const campaignLine = { key: 'campaign', status: stateOf(snapshot), detail };
    return [campaignLine, ...treeLines({ snapshot, rates: this.rates, now })].flatMap((line) => {
      const before = this.reported.get(line.key);
      // What has not begun has not changed.
      if (!before && line.status === 'waiting') return [];
      const changed = before?.status !== line.status || (before.detail !== line.detail && now - before.at >= DETAIL_MS);
      if (!changed) return [];
      this.reported.set(line.key, { status: line.status, detail: line.detail, at: now });
      const [kind, child] = line.key.split('/');
      return [
        {
          time: new Date(now).toISOString(),
          campaign: snapshot.name,
          stage: child === undefined ? line.key : 'capabilities',
          ...(child === undefined ? {} : { child: kind === 'arm' ? `${child} (arm)` : child }),
          status: line.status,
          detail: line.detail,
        },
      ];
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
export function createProgressOutput(options: {
  json?: boolean | undefined;
  campaign?: string | undefined;
  out?: NodeJS.WriteStream;
}): ProgressOutput {
  const { json, campaign, out = process.stdout } = options;
  const rates = new Rates();
  if (isTerminal(out) && !json) {
    const tree = new LiveTree(out);
    const output: ProgressOutput = {
      note: (_stage, detail) => tree.print(detail),
      show: (snapshot) => {
        tree.draw(frameLines({ snapshot, rates, now: Date.now(), columns: out.columns || 80, link: output.link }));
        if (snapshot.status !== 'RUNNING' || snapshot.asOf !== undefined) tree.leave();
      },
    };
    return output;
  }
  const changes = new Changes(rates);
  const write = (line: object) => void out.write(`${JSON.stringify(line)}\n`);
  return {
    note: (stage, detail, facts) =>
      write({ time: new Date().toISOString(), ...(campaign ? { campaign } : {}), stage, detail, ...facts }),
    show: (snapshot) => changes.since(snapshot, Date.now()).forEach(write),
  };
}
