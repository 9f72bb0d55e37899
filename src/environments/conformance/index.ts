/**
 * Checks whether an environment keeps its contract (docs/environments.md) and can train a policy. A finding says what is wrong and how to fix it; the engine
 * can use an environment without findings.
 */
import { type Environment, splitSchema } from '../../domain/environment';
import {
  checkClaims,
  checkDescription,
  checkIndependence,
  checkMistakes,
  checkReferences,
  checkSecondProcess,
  checkStarts,
  checkTasks,
  checkUntouched,
} from './checks';
import {
  CannotGoOn,
  type Checked,
  createReport,
  type Finding,
  nearlyOne,
  type OnRequest,
  playerOf,
  type Sample,
  strict,
  type TaskLists,
} from './probe';

export type { Finding };

interface CheckOptions {
  /** Opens the environment a second time, in another process if it has one. */
  again?: () => Promise<Environment>;
  /** Called after each request with its seconds. */
  onRequest?: OnRequest;
  /** Called as each check begins. */
  onCheck?: (check: string) => void;
  /** Called with remarks that are no violations. */
  onNote?: (note: Finding) => void;
  /** True once a simulated user has spoken. */
  isUserPlayed?: () => boolean;
}

type Check = readonly [id: string, run: (checked: Checked) => Promise<void>];

/** Independence comes before other checks that write, while shared state is still untouched. */
const CHECKS: readonly Check[] = [
  ['starts', checkStarts],
  ['evaluation of nothing', checkUntouched],
  ['independent episodes', checkIndependence],
  ['mistakes of the agent', checkMistakes],
  ['reference actions', checkReferences],
  ['rewards for words', checkClaims],
];

/** Time of one check that goes through samples. */
const BUDGET_MS = 8_000;

/** Runs all checks; a check that can't run because an earlier one failed is left out. The environment stays open. */
export async function checkEnvironment(opened: Environment, options: CheckOptions = {}): Promise<Finding[]> {
  const { again, onRequest, onCheck = () => undefined, onNote = () => undefined, isUserPlayed = () => false } = options;
  const report = createReport(onNote);
  const { findings } = report;
  const noted = new Set<string>();
  const environment = strict(opened, onRequest, (reward) => {
    const [problem, fix] = nearlyOne(reward) ?? [];
    if (problem === undefined || fix === undefined || noted.has(fix)) return;
    noted.add(fix);
    report.note('evaluate', problem, fix);
  });
  const second: Check[] = again ? [['second process', (checked) => checkSecondProcess(checked, again)]] : [];
  try {
    onCheck('describe');
    const description = await report.attempt('describe', () => environment.describe());
    if (description === undefined) return findings;
    checkDescription(description, report);
    onCheck('tasks');
    const lists = await checkTasks(environment, report);
    if (lists === undefined) return findings;
    let deadline = 0;
    const hasTime = () => performance.now() < deadline;
    const samples = samplesOf(lists);
    const checked: Checked = {
      ...report,
      ...playerOf(environment),
      description,
      lists,
      samples,
      isUserPlayed,
      hasTime,
    };
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
