/**
 * An instance in a generated module, which is also its episode's state. Invariant: JSON; a step changes nothing above
 * `made`.
 */
import type { Action } from '../../domain/environment';

export type Values = Record<string, string | number>;

export interface Request {
  write: string;
  said: Values;
  /** What it acts on, and a record that could be taken for it; null where there is none. */
  record: Values | null;
  lookalike: Values | null;
}

export interface Instance {
  seed: number;
  /** Needs the capability, or both of a pair; its twins do not. */
  special: boolean;
  key: string | number;
  /** The agent has been told the key. */
  known: boolean;
  requests: [Request, ...Request[]];
  records: Values[];
  wanted: Action[];
  amount: string | number | null;
  first: string;

  made: Action[];
  /** Names of records that a write was made on: a look-up no longer lists them. */
  settled: string[];
  texts: string[];
  looked: boolean;
  /** A look-up was tried before the key was known. */
  invented: boolean;
  asked: boolean;
  done: boolean;
}
