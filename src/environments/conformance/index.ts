/**
 * Does an environment keep its contract (docs/environments.md), and can a policy be trained in it? Invariant: every check runs against the
 * environment itself, and a finding says what is wrong and how to mend it. No findings: the engine can use it.
 */
import { splitSchema, type Environment } from '../../domain/environment';
import { checkBadCalls, checkSeveralCalls, checkValidCalls } from './calls';
import { BUDGET_MS, SAMPLES, type Checked, type Sample } from './checked';
import { checkDescription } from './description';
import { CannotGoOn, collectFindings, type Finding } from './finding';
import { checkIndependence } from './independence';
import { checkObservations } from './observations';
import { checkReferences } from './reference';
import { checkClaims } from './reward';
import { checkSecondProcess } from './second-process';
import { checkStarts, checkUntouched } from './start';
import { checkTasks, sampled, type Lists } from './tasks';

export type { Finding };

export interface CheckOptions {
  /** Opens it a second time: in another process, where it is one. */
  again?: () => Promise<Environment>;
  /** As each check begins. */
  onCheck?: (check: string) => void;
  /** What is worth knowing, and no violation. */
  onNote?: (note: Finding) => void;
  /** True once a simulated user has spoken. */
  isUserPlayed?: () => boolean;
}

/** Runs all checks; a check that can't run because an earlier one failed is left out. The environment stays open. */
export async function checkEnvironment(environment: Environment, options: CheckOptions = {}): Promise<Finding[]> {
  const { again, onCheck = () => undefined, onNote = () => undefined, isUserPlayed = () => false } = options;
  const found = collectFindings(onNote);
  try {
    onCheck('describe');
    const description = await found.attempt('describe', () => environment.describe());
    if (description === undefined || !checkDescription(description, found)) return found.findings;
    onCheck('tasks');
    const lists = await checkTasks(environment, found);
    if (lists === undefined) return found.findings;
    let deadline = 0;
    const hasTime = () => performance.now() < deadline;
    const samples = samplesOf(lists);
    const checked: Checked = { ...found, environment, description, lists, samples, isUserPlayed, hasTime };
    const second = again && ((each: Checked) => checkSecondProcess(each, again));
    for (const [name, check] of [...checks, ...(second ? [['second process', second] as const] : [])]) {
      onCheck(name);
      deadline = performance.now() + BUDGET_MS;
      await check(checked);
    }
  } catch (error) {
    if (!(error instanceof CannotGoOn)) throw error;
  }
  return found.findings;
}

const samplesOf = (lists: Lists): Sample[] =>
  Array.from({ length: SAMPLES }, (_, n) =>
    splitSchema.options.flatMap((split) => {
      const task = sampled(lists[split])[n];
      return task ? [{ task: task.id, split, start: undefined }] : [];
    }),
  ).flat();

/** Independence before whatever else writes: state that is shared is still as it was. */
const checks: (readonly [name: string, check: (checked: Checked) => Promise<void>])[] = [
  ['starts', checkStarts],
  ['evaluation of nothing', checkUntouched],
  ['independent episodes', checkIndependence],
  ['several calls in one message', checkSeveralCalls],
  ['mistakes of the agent', checkBadCalls],
  ['valid calls', checkValidCalls],
  ['observations', checkObservations],
  ['reference actions', checkReferences],
  ['rewards for words', checkClaims],
];
