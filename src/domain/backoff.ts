/** How long a step that failed waits before it is tried again: one policy for Temporal, for workflows and for those who name the moment themselves. */
export const BACKOFF = { firstMs: 1_000, factor: 2, longestMs: 300_000 } as const;

/** After the attempt of this number, the first of which is 1. */
export const backoffMs = (attempt: number): number =>
  Math.min(BACKOFF.longestMs, BACKOFF.firstMs * BACKOFF.factor ** (attempt - 1));

/** Attempts with half an hour of waiting between the first and the last: who has failed so often is not helped by one more. */
export const ROUND = 14;
export const ROUND_MS = Array.from({ length: ROUND - 1 }, (_, n) => backoffMs(n + 1)).reduce((sum, ms) => sum + ms, 0);
