/** Pause and resume: no step starts while paused, and a running training saves a checkpoint and hands its slot back. */
import { CancellationScope, condition, defineSignal, isCancellation, setHandler } from '@temporalio/workflow';
import { retryOf } from './failures';
import { signalNames } from './messages';

export const pauseSignal = defineSignal(signalNames.pause);
export const resumeSignal = defineSignal(signalNames.resume);

export class PauseGate {
  paused = false;

  /** `onChange` hears of every change, to pass it on and to show it. */
  constructor(onChange: (paused: boolean) => void) {
    const set = (paused: boolean) => () => {
      if (this.paused === paused) return;
      this.paused = paused;
      onChange(paused);
    };
    setHandler(pauseSignal, set(true));
    setHandler(resumeSignal, set(false));
  }

  /** Resolves at once while nothing is paused. */
  open(): Promise<void> {
    return condition(() => !this.paused);
  }

  /** Runs a step once the gate is open; a step that has begun is finished. */
  async step<T>(run: () => Promise<T>): Promise<T> {
    await this.open();
    return run();
  }

  /** Runs a step that can be cancelled and run again without losing work: a pause cancels it, resuming starts it anew. */
  async interruptible<T>(run: () => Promise<T>): Promise<T> {
    for (;;) {
      await this.open();
      const scope = new CancellationScope();
      const watch = new CancellationScope();
      let interrupted = false;
      const paused = watch
        .run(() => condition(() => this.paused))
        .then(
          () => {
            interrupted = true;
            scope.cancel();
          },
          () => undefined,
        );
      try {
        return await scope.run(run);
      } catch (error) {
        if (!interrupted || CancellationScope.current().consideredCancelled) throw error;
        // A step that was told to stop is not retried, whatever became of it: its worker may have been lost before it could say so.
        if (!isCancellation(error) && retryOf(error) === 'never') throw error;
      } finally {
        watch.cancel();
        await paused;
      }
    }
  }
}
