/** A terminal's screen, as far as the live tree needs one: it wraps long lines, moves up and clears. What scrolls off its top is kept. */
export class Screen {
  private readonly lines: string[][] = [[]];
  private row = 0;
  private column = 0;
  constructor(
    readonly columns: number,
    readonly rows: number,
  ) {}

  readonly write = (text: string): boolean => {
    // eslint-disable-next-line no-control-regex -- escape sequences
    for (const [token, count, letter] of text.matchAll(/\x1b\[(\d*)([A-Za-z])|[^]/g))
      this.take(token, Number(count), letter);
    return true;
  };

  /** All that was written and not cleared, scrolled off or not. */
  text(): string[] {
    return this.lines.map((line) => line.join('').trimEnd());
  }

  private take(token: string, count: number, letter: string | undefined): void {
    // What has scrolled off the top can't be reached any more.
    const top = Math.max(0, this.lines.length - this.rows);
    if (letter === 'A') this.row = Math.max(top, this.row - count);
    else if (letter === 'J') {
      this.lines.length = this.row + 1;
      this.lines[this.row]!.length = Math.min(this.column, this.lines[this.row]!.length);
    } else if (letter !== undefined) return;
    else if (token === '\r') this.column = 0;
    else if (token === '\n') this.down();
    else {
      if (this.column === this.columns) this.down();
      this.lines[this.row]![this.column++] = token;
    }
  }

  private down(): void {
    this.row += 1;
    this.column = 0;
    if (this.row === this.lines.length) this.lines.push([]);
  }
}
