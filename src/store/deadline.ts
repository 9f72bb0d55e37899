/** Puts a deadline on the calls of a folder store: on a mount whose server is gone a call never returns. A bucket's client has its own limits. */
import { OutsideFailure } from '../domain/failures';
import type { ArtifactStore } from './store';

/** A whole adapter is copied within this time. */
const LIMIT_SECONDS = 600;

type Call = (...args: unknown[]) => unknown;

/** Returns the store with calls that fail as StoreUnavailable once they take longer. */
export const withDeadline = (store: ArtifactStore, seconds = LIMIT_SECONDS): ArtifactStore =>
  store.isBucket ? store : { ...limitCalls(store, seconds), files: limitCalls(store.files, seconds) };

const limitCalls = <Part extends object>(part: Part, seconds: number): Part =>
  Object.fromEntries(
    Object.entries(part).map(([name, call]) => [
      name,
      typeof call === 'function' ? (...args: unknown[]) => within(name, seconds, (call as Call)(...args)) : call,
    ]),
  ) as Part;

function within(name: string, seconds: number, answer: unknown): unknown {
  if (!(answer instanceof Promise)) return answer;
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise((_, reject) => {
    const problem = `${name}: the store has not answered for ${seconds} s; see to the folder that it is in`;
    timer = setTimeout(() => reject(new OutsideFailure('StoreUnavailable', problem)), seconds * 1000);
  });
  return Promise.race([answer, late]).finally(() => clearTimeout(timer));
}
