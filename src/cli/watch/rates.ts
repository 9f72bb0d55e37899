/** How fast counters grow, over the last half minute. */
const WINDOW_MS = 30_000;

export class Rates {
  private readonly seen = new Map<string, { at: number; count: number }[]>();

  /** Growth of a counter per second; undefined until it was seen growing. A counter that falls begins anew. */
  perSecond(counter: string, count: number, now: number): number | undefined {
    let points = this.seen.get(counter) ?? [];
    const last = points.at(-1);
    if (last && count < last.count) points = [];
    if (!last || count !== last.count || points.length === 0) points.push({ at: now, count });
    // The last point before the window stays: it is where the window's growth begins.
    while (points[1] && points[1].at < now - WINDOW_MS) points.shift();
    this.seen.set(counter, points);
    const first = points[0];
    const grown = first ? count - first.count : 0;
    return first && grown > 0 && now > first.at ? (grown * 1000) / (now - first.at) : undefined;
  }
}
