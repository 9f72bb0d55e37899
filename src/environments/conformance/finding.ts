/** Findings of the conformance checks. Invariant: a finding says which method, what is wrong with which field, and how to mend it. */
import { reasonOf } from '../../domain/failures';
import { EnvironmentTrouble, quoted } from '../trouble';

export interface Finding {
  /** The method of the protocol; with what was done, where that is not plain. */
  check: string;
  problem: string;
  fix: string;
}

export type Add = (check: string, problem: string, fix: string) => void;

/** What has been found, and what is worth knowing of an environment that keeps its contract. */
export interface Findings {
  findings: Finding[];
  add: Add;
  note: Add;
  /** Undefined, and a finding, if it throws. */
  attempt<Result>(check: string, work: () => Promise<Result>): Promise<Result | undefined>;
}

/** Ends the checks: whatever is asked next would fail in the same way, and late. */
export class CannotGoOn extends Error {}

/** After so many deaths a process is not started again. */
const DEATHS = 4;
/** Longer than any message of ours with two quotes in it. */
const LENGTH = 6_000;

export function collectFindings(onNote: (note: Finding) => void): Findings {
  const findings: Finding[] = [];
  let deaths = 0;
  const add: Add = (check, problem, fix) => {
    const finding = { check, problem: quoted(problem, LENGTH), fix };
    if (!findings.some(({ problem: known }) => known === finding.problem)) findings.push(finding);
  };
  return {
    findings,
    add,
    note: (check, problem, fix) => onNote({ check, problem: quoted(problem, LENGTH), fix }),
    async attempt(check, work) {
      try {
        return await work();
      } catch (error) {
        if (error instanceof CannotGoOn) throw error;
        if (!(error instanceof EnvironmentTrouble)) {
          add(check, reasonOf(error), 'answer instead of failing; the message says what failed');
          return undefined;
        }
        const { method, problem, fix, stderr, silent, lacks } = error.parts;
        if (lacks) {
          onNote({ check, problem: `not checked, for there is no ${lacks} here: ${problem}`, fix });
          return undefined;
        }
        const longer = silent ? '; --silence SECONDS waits longer' : '';
        const said = stderr ? `; its last words on stderr:\n${stderr}` : '';
        add(method === undefined || check.startsWith(method) ? check : method, problem, `${fix}${longer}${said}`);
        if (silent || (error.type === 'EnvironmentDied' && ++deaths >= DEATHS)) throw new CannotGoOn();
        return undefined;
      }
    },
  };
}
