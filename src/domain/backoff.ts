/** How long a step that failed waits before it is tried again: one policy for Temporal and for those who name the moment themselves. */
export const BACKOFF = { firstMs: 1_000, factor: 2, longestMs: 60_000 } as const;

/** After the attempt of this number, the first of which is 1. */
export const backoffMs = (attempt: number): number =>
  Math.min(BACKOFF.longestMs, BACKOFF.firstMs * BACKOFF.factor ** (attempt - 1));
