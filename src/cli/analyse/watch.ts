/**
 * How far an analysis is, on stderr: one line that is drawn over on a terminal, a line a step elsewhere. Invariant: only what happened moves it,
 * and what comes from an endpoint can do nothing to the terminal.
 */
import type { OutsideFailure } from '../../domain/failures';
import { duration, wholeNumber } from '../../report/format';
import { plain } from '../plain';
import { dollarText, type Cost } from './cost';

export interface Watch {
  discovering(done: number, total: number): void;
  labeling(pass: number, done: number, total: number): void;
  /** `reason`: why it failed and is left out. */
  passEnded(pass: number, reason?: string): void;
  waits(o: { failure: OutsideFailure; waitMs: number }): void;
  /** A piece of some reply has come. */
  heard(piece: string): void;
  /** Whether the endpoint has said anything yet. */
  answered(): boolean;
  /** Paid for in this run. */
  spent(cost: Cost): void;
  /** Nothing more will come. */
  close(): void;
}

export interface Output {
  write(text: string): unknown;
  isTTY?: boolean;
  columns?: number;
}

/** Pieces come by the hundred a second. */
const DRAW_EVERY_MS = 200;

export function createWatch({ passes, out }: { passes: number; out: Output }): Watch {
  const live = out.isTTY === true;
  const fractions = new Map<number, number>();
  let step = 'discovery';
  let [ended, characters, drawnAt] = [0, 0, 0];
  let [cost, shown, told, toldStep] = ['', '', '', ''];

  const clear = () => {
    if (shown !== '') out.write('\r\u001b[K');
    shown = '';
  };
  const line = (text: string) => {
    // Passes that run side by side meet the same trouble.
    if (text === told) return;
    told = text;
    clear();
    out.write(`${plain(text)}\n`);
  };
  const draw = () => {
    if (!live) {
      if (step !== toldStep) line((toldStep = step));
      return;
    }
    const received = characters > 0 ? `${wholeNumber(characters)} characters received` : '';
    const text = plain([step, received, cost].filter(Boolean).join(' · ')).slice(
      0,
      Math.max(1, (out.columns || 80) - 1),
    );
    if (text === shown) return;
    clear();
    out.write((shown = text));
    drawnAt = Date.now();
  };
  const drawLabels = () => {
    const done = [...fractions.values()].reduce((sum, fraction) => sum + fraction, 0);
    // A log would be full of percents.
    step = `labels: ${ended} of ${passes} passes done${live ? `, ${Math.floor((100 * done) / passes)}%` : ''}`;
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
      ended++;
      fractions.set(pass, 1);
      if (reason !== undefined) line(`pass ${pass + 1} failed and is left out: ${reason.split('\n')[0]}`);
      drawLabels();
    },
    waits({ failure, waitMs }) {
      line(`${failure.message.split('\n')[0]}; trying again in ${duration(waitMs / 1000)}`);
      if (live) draw();
    },
    heard(piece) {
      characters += piece.length;
      if (live && Date.now() - drawnAt >= DRAW_EVERY_MS) draw();
    },
    answered: () => characters > 0,
    spent(all) {
      const { requests, dollars } = all;
      cost = [`${wholeNumber(requests)} requests`, ...(dollars === undefined ? [] : [dollarText(dollars)])].join(', ');
      if (live) draw();
    },
    close: clear,
  };
}
