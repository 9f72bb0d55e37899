/** The tree on a terminal: colours, width, and drawing over what was drawn before. */
import type { StepStatus } from '../../workflows/messages';
import { durationText } from './format';
import type { Rates } from './rates';
import type { Snapshot } from './snapshot';
import { treeLines } from './tree';

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
  const { progress } = snapshot;
  const elapsed = durationText(((snapshot.closedAt ?? now) - snapshot.startedAt) / 1000);
  const state = progress?.paused ? 'paused' : snapshot.status.toLowerCase();
  const head = [snapshot.name, progress ? `seed ${progress.seed}` : '', `${state} ${elapsed}`]
    .filter(Boolean)
    .join(' · ');
  const tree = treeLines({ snapshot, rates, now });
  const width = Math.max(0, ...tree.map(({ label, depth }) => label.length + 2 * depth));
  const lines = tree.map(({ depth, status, label, detail }) => {
    const { mark, code } = marks[status];
    const text = cut(`${mark} ${`${'  '.repeat(depth)}${label}`.padEnd(width)}  ${detail}`.trimEnd(), columns);
    if (!colour) return text;
    return paint(text, code, status === 'waiting' ? text.length : mark.length);
  });
  const counts = progress ? [`  ${progress.rollouts.scored} rollouts scored, ${progress.rollouts.broken} broken`] : [];
  const away = progress ? [] : ['  no worker answers: what is known is on disk, and goes on with `campaign run`'];
  return [cut(head, columns), ...lines, ...counts, ...away, ...(link ? [link] : [])].map((line) => line.trimEnd());
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
    this.out.write(`${this.up()}${text}\n`);
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
