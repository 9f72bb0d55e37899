/**
 * How far an analysis is, on stderr: one line that is drawn over on a terminal, a line a step elsewhere. Invariant: only what happened moves it,
 * and what comes from an endpoint can do nothing to the terminal.
 */
import { costOf } from '../../domain/endpoints';
import type { Ledger } from '../../language-model/types';
import { duration, wholeNumber } from '../../report/format';
import { plain } from '../../terminal';

interface Output {
  write(text: string): unknown;
  isTTY?: boolean;
  columns?: number;
}

/** Pieces of replies come by the hundred a second. */
const DRAW_EVERY_MS = 200;

export class Progress {
  private readonly live: boolean;
  /** How much of each pass is done. */
  private readonly shares: number[];
  private endedPasses = 0;
  private step = '';
  private characters = 0;
  private requests = 0;
  private dollars: number | undefined;
  private drawn = '';
  private drawnAt = 0;
  private lastLine = '';

  constructor(
    private readonly passes: number,
    private readonly out: Output,
  ) {
    this.live = out.isTTY === true;
    this.shares = Array<number>(passes).fill(0);
  }

  /** A log would be full of counts and percents. */
  discovering(done: number, total: number): void {
    this.toStep(this.live ? `discovery: ${done} of ${total}` : 'discovery');
  }

  labeling(pass: number, done: number, total: number): void {
    this.shares[pass] = total > 0 ? done / total : 0;
    const share = this.shares.reduce((sum, one) => sum + one, 0) / this.passes;
    const percent = this.live ? `, ${Math.floor(100 * share)}%` : '';
    this.toStep(`labels: ${this.endedPasses} of ${this.passes} passes done${percent}`);
  }

  /** `reason`: why it failed and is left out. */
  passEnded(pass: number, reason?: string): void {
    this.endedPasses++;
    if (reason !== undefined) this.line(`pass ${pass + 1} failed and is left out: ${reason.split('\n')[0]}`);
    this.labeling(pass, 1, 1);
  }

  /** A step is tried again after so long. */
  waits(reason: string, waitMs: number): void {
    this.line(`${reason.split('\n')[0]}; trying again in ${duration(waitMs / 1000)}`);
    if (this.live) this.draw();
  }

  /** A piece of some reply has come. */
  readonly received = (piece: string): void => {
    this.characters += piece.length;
    if (this.live && Date.now() - this.drawnAt >= DRAW_EVERY_MS) this.draw();
  };

  /** Whether the endpoint has said anything yet. */
  hasAnswer(): boolean {
    return this.characters > 0;
  }

  /** The ledger, of which what is paid for is shown. */
  counting(ledger: Ledger): Ledger {
    return {
      ...ledger,
      keep: async (key, kept) => {
        await ledger.keep(key, kept);
        const { dollars } = costOf(kept.reply.usage, kept.price);
        this.requests++;
        if (dollars !== undefined) this.dollars = (this.dollars ?? 0) + dollars;
        if (this.live) this.draw();
      },
    };
  }

  /** Nothing more will come. */
  close(): void {
    if (this.drawn !== '') this.out.write('\r\u001b[K');
    this.drawn = '';
  }

  private toStep(step: string): void {
    if (step === this.step) return;
    this.step = step;
    if (this.live) this.draw();
    else this.line(step);
  }

  private line(text: string): void {
    // Passes that run side by side meet the same trouble.
    if (text === this.lastLine) return;
    this.lastLine = text;
    this.close();
    this.out.write(`${plain(text)}\n`);
  }

  private draw(): void {
    const parts = [
      this.step,
      this.characters > 0 && `${wholeNumber(this.characters)} characters received`,
      this.requests > 0 && `${wholeNumber(this.requests)} requests`,
      this.dollars !== undefined && `$${this.dollars.toFixed(2)}`,
    ];
    const text = plain(parts.filter(Boolean).join(' · ')).slice(0, Math.max(1, (this.out.columns || 80) - 1));
    if (text === this.drawn) return;
    this.close();
    this.out.write((this.drawn = text));
    this.drawnAt = Date.now();
  }
}
