/**
 * Does an environment keep its contract (docs/environments.md), and can a policy be trained in it? A finding says what
 * is wrong and how to mend it; where there is none, the engine can use it.
 */
import { type Environment, splitSchema } from '../../domain/environment';
import {
  checkBadCalls,
  checkIndependence,
  checkObservations,
  checkSecondProcess,
  checkSeveralCalls,
  checkValidCalls,
} from './conduct';
import { checkClaims, checkDescription, checkReferences, checkStarts, checkTasks, checkUntouched } from './contract';
import { CannotGoOn, type Checked, createReport, type Finding, type Sample, type TaskLists } from './probe';

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

type Check = readonly [id: string, run: (checked: Checked) => Promise<void>];

/** Independence before whatever else writes: state that is shared is still as it was. */
const CHECKS: readonly Check[] = [
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

/** Of one check that goes through samples. */
const BUDGET_MS = 8_000;

/** Runs all checks; a check that can't run because an earlier one failed is left out. The environment stays open. */
export async function checkEnvironment(environment: Environment, options: CheckOptions = {}): Promise<Finding[]> {
  const { again, onCheck = () => undefined, onNote = () => undefined, isUserPlayed = () => false } = options;
  const report = createReport(onNote);
  const { findings } = report;
  const second: Check[] = again ? [['second process', (checked) => checkSecondProcess(checked, again)]] : [];
  try {
    onCheck('describe');
    const description = await report.attempt('describe', () => environment.describe());
    if (description === undefined || !checkDescription(description, report)) return findings;
    onCheck('tasks');
    const lists = await checkTasks(environment, report);
    if (lists === undefined) return findings;
    let deadline = 0;
    const hasTime = () => performance.now() < deadline;
    const samples = samplesOf(lists);
    const checked: Checked = { ...report, environment, description, lists, samples, isUserPlayed, hasTime };
    for (const [id, run] of [...CHECKS, ...second]) {
      onCheck(id);
      deadline = performance.now() + BUDGET_MS;
      await run(checked);
    }
  } catch (error) {
    if (!(error instanceof CannotGoOn)) throw error;
  }
  return findings;
}

/** Played of each split. More find more of what only some tasks have; these take a second with an honest environment. */
const SAMPLES = 4;

/** Spread over each list, so that tasks of several kinds are among them; the splits in turn. */
function samplesOf(lists: TaskLists): Sample[] {
  return Array.from({ length: SAMPLES }, (_, n) =>
    splitSchema.options.flatMap((split): Sample[] => {
      const tasks = lists[split];
      const count = Math.min(SAMPLES, tasks.length);
      return n < count ? [{ task: tasks[Math.floor((n * tasks.length) / count)]!.id, split }] : [];
    }),
  ).flat();
}

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
          ...episode,
          step: (message) => within('step', () => episode.step(message)),
          evaluate: (reason) => within('evaluate', () => episode.evaluate(reason)),
        };
      },
    },
  };
}
