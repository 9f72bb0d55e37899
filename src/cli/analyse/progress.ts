/**
 * How far an analysis is, on stderr: one line that is drawn over on a terminal, a line a step elsewhere. Invariant: only what happened moves it,
 * and what comes from an endpoint can do nothing to the terminal.
 */
import { costOf } from '../../domain/endpoints';
import type { Ledger } from '../../language-model/types';
import { duration, wholeNumber } from '../../report/format';
import { plain } from '../../terminal';

export interface Progress {
  discovering(done: number, total: number): void;
  labeling(pass: number, done: number, total: number): void;
  /** `reason`: why it failed and is left out. */
  passEnded(pass: number, reason?: string): void;
  /** A step is tried again after so long. */
  waits(reason: string, waitMs: number): void;
  /** A piece of some reply has come. */
  received(piece: string): void;
  /** Whether the endpoint has said anything yet. */
  hasAnswer(): boolean;
  /** The ledger, which tells here what is paid for while it is. */
  counting(ledger: Ledger): Ledger;
  /** Nothing more will come. */
  close(): void;
}

interface Output {
  write(text: string): unknown;
  isTTY?: boolean;
  columns?: number;
}

/** Pieces come by the hundred a second. */
const DRAW_EVERY_MS = 200;

export function createProgress({ passes, out }: { passes: number; out: Output }): Progress {
  const live = out.isTTY === true;
  const fractions = new Map<number, number>();
  const paid = { requests: 0, dollars: undefined as number | undefined };
  let step = 'discovery';
  let endedPasses = 0;
  let characters = 0;
  let drawnAt = 0;
  let drawn = '';
  let lastLine = '';
  let lastStep = '';

  const clear = () => {
    if (drawn !== '') out.write('\r\u001b[K');
    drawn = '';
  };
  const line = (text: string) => {
    // Passes that run side by side meet the same trouble.
    if (text === lastLine) return;
    lastLine = text;
    clear();
    out.write(`${plain(text)}\n`);
  };
  const draw = () => {
    if (!live) {
      if (step !== lastStep) line((lastStep = step));
      return;
    }
    const parts = [
      step,
      ...(characters > 0 ? [`${wholeNumber(characters)} characters received`] : []),
      ...(paid.requests > 0 ? [`${wholeNumber(paid.requests)} requests`] : []),
      ...(paid.dollars === undefined ? [] : [`$${paid.dollars.toFixed(2)}`]),
    ];
    const text = plain(parts.join(' · ')).slice(0, Math.max(1, (out.columns || 80) - 1));
    if (text === drawn) return;
    clear();
    out.write((drawn = text));
    drawnAt = Date.now();
  };
  const drawLabels = () => {
    const done = [...fractions.values()].reduce((sum, fraction) => sum + fraction, 0);
    // A log would be full of percents.
    step = `labels: ${endedPasses} of ${passes} passes done${live ? `, ${Math.floor((100 * done) / passes)}%` : ''}`;
    draw();
  };

  return {
    discovering(done, total) {
      step = live ? `discovery: ${done} of ${total}` : 'discovery';
      draw();
    },
    labeling(pass, done, total) {
      fractions.set(pass, total > 0 ? done / total : 0);
      drawLabels();
    },
    passEnded(pass, reason) {
      endedPasses++;
      fractions.set(pass, 1);
      if (reason !== undefined) line(`pass ${pass + 1} failed and is left out: ${reason.split('\n')[0]}`);
      drawLabels();
    },
    waits(reason, waitMs) {
      line(`${reason.split('\n')[0]}; trying again in ${duration(waitMs / 1000)}`);
      if (live) draw();
    },
    received(piece) {
      characters += piece.length;
      if (live && Date.now() - drawnAt >= DRAW_EVERY_MS) draw();
    },
    hasAnswer: () => characters > 0,
    counting: (ledger) => ({
      ...ledger,
      async keep(key, kept) {
        await ledger.keep(key, kept);
        const { dollars } = costOf(kept.reply.usage, kept.price);
        paid.requests++;
        if (dollars !== undefined) paid.dollars = (paid.dollars ?? 0) + dollars;
        if (live) draw();
      },
    }),
    close: clear,
  };
}
