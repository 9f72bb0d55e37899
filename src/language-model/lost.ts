/**
 * Questions whose replies break off or never come. Invariant: what is paid for time after time and brings nothing is given up; whoever asks
 * after that, or in another way, begins anew.
 */
export const LOST_IN_A_ROW = 5;

/** How a question is asked, as far as the loss may be mended there. */
interface Way {
  /** Of the question. */
  key: string;
  url: string;
  timeoutSeconds: number;
}

const inARow = new Map<string, number>();
const nameOf = ({ key, url, timeoutSeconds }: Way): string => JSON.stringify([key, url, timeoutSeconds]);

/** Counts one more loss: whether it is to be the last. */
export function isLostForGood(way: Way): boolean {
  const name = nameOf(way);
  const losses = (inARow.get(name) ?? 0) + 1;
  if (losses < LOST_IN_A_ROW) inARow.set(name, losses);
  else inARow.delete(name);
  return losses >= LOST_IN_A_ROW;
}

export const forgetLost = (way: Way): void => void inARow.delete(nameOf(way));
