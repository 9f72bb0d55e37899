/** The tree on a terminal: colours, width, and drawing over what was drawn before. */
import type { CampaignProgress, StepStatus } from '../../workflows/messages';
import { plain } from '../plain';
import { failuresIn, failureText } from './failures';
import { durationText, timeText } from './format';
import type { Rates } from './rates';
import type { Snapshot } from './snapshot';
import { stateOf, treeLines } from './tree';

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

/** The lines of one frame, none wider than the terminal. */
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
  const width = Math.max(0, ...tree.map(({ label, depth }) => label.length + 2 * depth));
  const lines = tree.map(({ depth, status, label, detail }) => {
    const { mark, code } = marks[status];
    const text = cut(`${mark} ${`${'  '.repeat(depth)}${label}`.padEnd(width)}  ${detail}`.trimEnd(), columns);
    if (!colour) return text;
    return paint(text, code, status === 'waiting' ? text.length : mark.length);
  });
  const counts = progress ? [cut(`  ${countsText(progress)}`, columns)] : [];
  const why = failure ? wrapped(`why: ${plain(failure)}`, columns - 2).map((line) => `  ${line}`) : [];
  const away = awayLines(snapshot).map((line) => cut(line, columns));
  return [cut(head, columns), ...lines, ...counts, ...why, ...away, ...(link ? [link] : [])].map((line) =>
    line.trimEnd(),
  );
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

function wrapped(text: string, columns: number): string[] {
  const lines: string[] = [];
  for (const word of text.split(/\s+/)) {
    const longer = [lines.at(-1), word].filter(Boolean).join(' ');
    if (lines.length > 0 && longer.length <= columns) lines[lines.length - 1] = longer;
    else lines.push(cut(word, columns));
  }
  return lines;
}

/** Draws frames in place; what is printed between them stays above. */
export class LiveTree {
  private drawn = 0;
  constructor(private readonly out: NodeJS.WriteStream) {}

  draw(lines: string[]): void {
    // More lines than the terminal has rows cannot be drawn over: the last ones are the ones that matter.
    const shown = lines.slice(-Math.max(1, this.out.rows - 1));
    this.out.write(`${this.up()}${shown.join('\n')}\n`);
    this.drawn = shown.length;
  }

  /** Prints lines above the tree, which is drawn anew below them. */
  print(text: string): void {
    this.out.write(`${this.up()}${plain(text)}\n`);
    this.drawn = 0;
  }

  /** Leaves what is drawn on the screen: it is the last frame. */
  leave(): void {
    this.drawn = 0;
  }

  private up(): string {
    return this.drawn > 0 ? `\x1b[${this.drawn}A\x1b[0J` : '';
  }
}

const cut = (text: string, columns: number): string =>
  text.length > columns ? `${text.slice(0, Math.max(0, columns - 1))}…` : text;

/** Colours the first `length` characters. */
function paint(text: string, code: number, length = text.length): string {
  return `\x1b[${code}m${text.slice(0, length)}\x1b[0m${text.slice(length)}`;
}
