/**
 * Does an environment keep its contract (docs/environments.md), and can a policy be trained in it? Invariant: every check runs
 * against the environment itself, and a finding says what is wrong and how to mend it. No findings: the engine can use it.
 */
import { type Environment, splitSchema } from '../../domain/environment';
import { checkBadCalls, checkObservations, checkSeveralCalls, checkValidCalls } from './calls';
import { checkIndependence, checkSecondProcess } from './independence';
import { BUDGET_MS, CannotGoOn, type Checked, collectFindings, type Finding, type Sample, SAMPLES } from './probe';
import { checkClaims, checkReferences } from './rewards';
import { checkDescription, checkStarts, checkTasks, checkUntouched, type Lists, sampled } from './shapes';

export type { Finding };

interface CheckOptions {
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

type Slowest = Partial<Record<'describe' | 'tasks' | 'reset' | 'step' | 'evaluate', number>>;

/** The environment, and the seconds of its slowest requests so far. */
export function timed(environment: Environment): { environment: Environment; slowest: Slowest } {
  const slowest: Slowest = {};
  async function within<Result>(method: keyof Slowest, work: () => Promise<Result>): Promise<Result> {
    const started = performance.now();
    try {
      return await work();
    } finally {
      slowest[method] = Math.max(slowest[method] ?? 0, (performance.now() - started) / 1000);
    }
  }
  return {
    slowest,
    environment: {
      describe: () => within('describe', () => environment.describe()),
      tasks: (split) => within('tasks', () => environment.tasks(split)),
      close: () => environment.close(),
      async reset(task, signal) {
        const episode = await within('reset', () => environment.reset(task, signal));
        return {
          start: episode.start,
          step: (message) => within('step', () => episode.step(message)),
          evaluate: (reason) => within('evaluate', () => episode.evaluate(reason)),
          close: () => episode.close(),
        };
      },
    },
  };
}
