/** Ctrl-C, and being asked to end by the system: the first time in order, the second time at once. */

export interface Interruption {
  /** Raised by the first signal, and by `abort`. */
  signal: AbortSignal;
  /** Resolves with the first signal. */
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
  const handle = () => {
    if (controller.signal.aborted) {
      onSecond();
      process.exit(130);
    }
    onFirst();
    controller.abort();
    resolveFirst();
  };
  for (const name of SIGNALS) process.on(name, handle);
  return {
    signal: controller.signal,
    first,
    abort: () => controller.abort(),
    dispose: () => SIGNALS.forEach((name) => process.off(name, handle)),
  };
}
