/**
 * How far an analysis is, on stderr: one line that is drawn over on a terminal, a line a step elsewhere. Only what happened moves it, and what
 * comes from an endpoint can do nothing to the terminal.
 */
import { costOf } from '../../domain/endpoints';
import type { Ledger } from '../../language-model/model';
import { duration, wholeNumber } from '../../report/format';
import { plain } from '../../terminal';

interface Output {
  write(text: string): unknown;
  isTTY?: boolean;
  columns?: number;
}

/** Pieces of replies come by the hundred a second. */
const DRAW_EVERY_MS = 200;

export type Progress = ReturnType<typeof showProgress>;

export function showProgress(passes: number, out: Output) {
  const live = out.isTTY === true;
  /** How much of each pass is done. */
  const shares = Array<number>(passes).fill(0);
  const paid: { requests: number; characters: number; dollars?: number } = { requests: 0, characters: 0 };
  let [step, drawn, lastLine] = ['', '', ''];
  let [drawnAt, passesEnded] = [0, 0];

  function close(): void {
    if (drawn !== '') out.write('\r\u001b[K');
    drawn = '';
  }

  function line(text: string): void {
    // Passes that run side by side meet the same trouble.
    if (text === lastLine) return;
    lastLine = text;
    close();
    out.write(`${plain(text)}\n`);
    draw();
  }

  function draw(): void {
    if (!live) return;
    const parts = [
      step,
      paid.characters > 0 && `${wholeNumber(paid.characters)} characters received`,
      paid.requests > 0 && `${wholeNumber(paid.requests)} requests`,
      paid.dollars !== undefined && `$${paid.dollars.toFixed(2)}`,
    ];
    const text = plain(parts.filter(Boolean).join(' · ')).slice(0, Math.max(1, (out.columns || 80) - 1));
    if (text === drawn) return;
    close();
    out.write((drawn = text));
    drawnAt = Date.now();
  }

  /** A log would be full of counts and percents. */
  function toStep(text: string, count: string): void {
    const next = live ? text + count : text;
    if (next === step) return;
    step = next;
    if (live) draw();
    else line(step);
  }

  function labeling(pass: number, done: number, total: number): void {
    shares[pass] = total > 0 ? done / total : 0;
    const share = shares.reduce((sum, one) => sum + one, 0) / passes;
    toStep(`labels: ${passesEnded} of ${passes} passes done`, `, ${Math.floor(100 * share)}%`);
  }

  return {
    discovering: (done: number, total: number): void => toStep('discovery', `: ${done} of ${total}`),
    labeling,

    /** `reason`: why it failed and is left out. */
    passEnded(pass: number, reason?: string): void {
      passesEnded++;
      if (reason !== undefined) line(`pass ${pass + 1} failed and is left out: ${reason.split('\n')[0]}`);
      labeling(pass, 1, 1);
    },

    /** A step is tried again after so long. */
    waits: (reason: string, waitMs: number): void =>
      line(`${reason.split('\n')[0]}; trying again in ${duration(waitMs / 1000)}`),

    /** A piece of some reply has come. */
    received(piece: string): void {
      paid.characters += piece.length;
      if (Date.now() - drawnAt >= DRAW_EVERY_MS) draw();
    },

    /** Whether the endpoint has said anything yet. */
    hasAnswer: (): boolean => paid.characters > 0,

    /** The ledger, of which what is paid for is shown. */
    counting: (ledger: Ledger): Ledger => ({
      ...ledger,
      async keep(key, kept) {
        await ledger.keep(key, kept);
        const { dollars } = costOf(kept.reply.usage, kept.price);
        paid.requests++;
        if (dollars !== undefined) paid.dollars = (paid.dollars ?? 0) + dollars;
        draw();
      },
    }),

    /** Nothing more will come. */
    close,
  };
}
