/**
 * Ctrl-C, and being asked to end by the system: the first time in order, the second time at once. Once nobody can read stdout any more it is
 * in order as well; a signal that comes after this, as when a terminal is closed, is still the first.
 */

export interface Interruption {
  /** Raised by the first signal, by the end of stdout, and by `abort`. */
  signal: AbortSignal;
  /** Resolves with the first signal, or the end of stdout. */
  first: Promise<void>;
  /** Ends what waits for `signal`: the run is over. */
  abort(): void;
  /** Forgets the signals again. */
  dispose(): void;
}

const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;

/** @param onSecond ends everything at once; the process exits right after it. */
export function onInterrupt({ onFirst, onSecond }: { onFirst: () => void; onSecond: () => void }): Interruption {
  const controller = new AbortController();
  let resolveFirst: () => void = () => undefined;
  const first = new Promise<void>((resolve) => (resolveFirst = resolve));
  const end = () => {
    if (controller.signal.aborted) return;
    onFirst();
    controller.abort();
    resolveFirst();
  };
  let asked = false;
  const handle = () => {
    if (asked) {
      onSecond();
      process.exit(130);
    }
    asked = true;
    end();
  };
  for (const name of SIGNALS) process.on(name, handle);
  process.stdout.on('error', end);
  return {
    signal: controller.signal,
    first,
    abort: () => controller.abort(),
    dispose: () => {
      SIGNALS.forEach((name) => process.off(name, handle));
      process.stdout.off('error', end);
    },
  };
}
