/** Findings of the conformance checks. Invariant: a finding says what is wrong and how to mend it. */
import { reasonOf } from '../domain/failures';

export interface Finding {
  /** Which part of the contract: a method of the protocol, or a promise about several. */
  check: string;
  problem: string;
  fix: string;
}

export type Add = (check: string, problem: string, fix: string) => void;

/** Undefined, and a finding, if it throws. */
export async function attempt<Result>(
  check: string,
  add: Add,
  work: () => Promise<Result>,
): Promise<Result | undefined> {
  try {
    return await work();
  } catch (error) {
    add(check, reasonOf(error), 'answer instead of failing; the message says what failed');
    return undefined;
  }
}
