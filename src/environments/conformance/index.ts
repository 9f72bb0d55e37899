/**
 * Checks whether an environment keeps its contract (docs/environments.md) and can train a policy: the shape of every answer, determinism, mistakes of an
 * agent, reference solutions, parallel episodes and an unknown task. A finding says what is wrong and how to fix it.
 */
import {
  type Environment,
  type EnvironmentDescription,
  type Evaluation,
  type ResetResult,
  type Split,
  splitSchema,
  type Task,
} from '../../domain/environment';
import { isFailure, reasonOf } from '../../domain/failures';
import { isSuccess } from '../../domain/rollout';
import { EnvironmentError, quoted } from '../protocol';
import { busyScript, evaluationOf, firstDifference, mistakes, play, SEED, unsolved, within } from './episodes';

export interface Finding {
  /** The method of the protocol, with the action of the check if the method alone is ambiguous. */
  check: string;
  problem: string;
  fix: string;
}

interface CheckOptions {
  /** Opens the environment a second time, in another process if it has one. */
  again?: () => Promise<Environment>;
  /** Called as each check begins. */
  onCheck?: (check: string) => void;
  /** Called with remarks that are no violations. */
  onNote?: (note: Finding) => void;
  /** True once a simulated user has spoken: a stand-in, with which no task can be solved. */
  isUserPlayed?: () => boolean;
}

/** Tasks that are played of each split, spread over its list. */
const SAMPLES = 4;
/** Parallel episodes, enough to show shared state. */
const SIDE_BY_SIDE = 8;
/** Longer than any message of ours with two quotes in it. */
const LENGTH = 6_000;

const PROCESS_FIX =
  'derive it from task and seed: no process id, no clock, no order of a set or a hash that changes with the process';
const STATE_FIX = 'keep all state in the episode, copied afresh at reset, and draw nothing from a shared source';
const SOLVED_FIX =
  'return all writes and facts that a solution needs and make the reward 1 for them, or describe hasReference: false';

/** A task with what was seen of it in the first process. */
interface Sample {
  task: string;
  /** The evaluation of an episode in which nothing was done. */
  untouched?: Evaluation;
}

/** The process is gone, and every later request would fail in the same way. */
const isGone = (error: unknown): boolean => isFailure(error, 'EnvironmentDied', 'EnvironmentMissing');

/** Runs all checks. The environment stays open. */
export async function checkEnvironment(opened: Environment, options: CheckOptions = {}): Promise<Finding[]> {
  const findings: Finding[] = [];
  let second: Environment | undefined;
  try {
    await checkAll(opened, options, findings, async () => (second ??= await options.again?.()));
  } catch (error) {
    if (!isGone(error)) throw error;
  } finally {
    await second?.close().catch(() => undefined);
  }
  return findings;
}

async function checkAll(
  first: Environment,
  { onCheck = () => undefined, onNote = () => undefined, isUserPlayed = () => false }: CheckOptions,
  findings: Finding[],
  again: () => Promise<Environment | undefined>,
): Promise<void> {
  const add = (check: string, problem: string, fix: string): void => {
    const finding = { check, problem: quoted(problem, LENGTH), fix };
    if (!findings.some((known) => known.problem === finding.problem)) findings.push(finding);
  };
  const noted = new Set<string>();
  const note = (check: string, problem: string, fix: string): void => {
    if (noted.size < noted.add(fix).size) onNote({ check, problem: quoted(problem, LENGTH), fix });
  };

  /** Returns undefined and adds a finding if `work` throws. */
  async function attempt<Result>(check: string, work: () => Promise<Result>): Promise<Result | undefined> {
    try {
      return await work();
    } catch (error) {
      const fix = 'answer instead of failing; the message says what failed';
      const parts =
        error instanceof EnvironmentError ? error.parts : { problem: reasonOf(error), fix, method: undefined };
      if ('lacks' in parts)
        note(check, `not checked, for there is no ${parts.lacks} here: ${parts.problem}`, parts.fix);
      else add(parts.method && !check.startsWith(parts.method) ? parts.method : check, parts.problem, parts.fix);
      if (isGone(error)) throw error;
      return undefined;
    }
  }
  /** Returns whether the two differ, and adds a finding if they do. */
  function differs(check: string, what: string, o: { one: unknown; other: unknown; fix?: string }): boolean {
    const difference = firstDifference(o.one, o.other);
    if (difference !== undefined) add(check, `${what}: ${difference}`, o.fix ?? PROCESS_FIX);
    return difference !== undefined;
  }

  onCheck('describe');
  const description = await attempt('describe', () => first.describe());
  if (!description) return;
  const { tools, policy, hasReference } = description;
  if (policy.trim() === '') add('describe', 'policy is empty', "write the agent's rules: they are the system message");
  if (tools.length === 0)
    note('describe', 'tools is empty: the agent only talks', 'describe the tools, if there are any');
  for (const [n, { name }] of tools.entries()) {
    const field = `tools.${n}.name: "${quoted(name, 60)}"`;
    if (!/^[\w-]{1,64}$/.test(name))
      add('describe', field, 'use up to 64 letters, digits, _ and -, as models can call it');
    if (tools.findIndex((tool) => tool.name === name) < n)
      add('describe', `${field} is the name of another tool`, 'give every tool its own name');
  }
  // A second process shows differences between processes, and effects of earlier episodes.
  const second = (await attempt('describe (second process)', again)) ?? first;
  const other = await attempt('describe (second process)', () => second.describe());
  if (other) differs('describe', 'the description differs in a second process', { one: description, other });

  onCheck('tasks');
  const lists = new Map<Split, Task[]>();
  const known = new Set<string>();
  for (const split of splitSchema.options) {
    const tasks = await attempt('tasks', () => first.tasks(split));
    const others = tasks && (await attempt('tasks', () => second.tasks(split)));
    const last = others && (await attempt('tasks', () => first.tasks(split)));
    if (!tasks || !others || !last) continue;
    lists.set(split, tasks);
    if (tasks.length === 0) add('tasks', `the ${split} split is empty`, 'list at least one task in each split');
    const wrong = tasks.find((task) => task.split !== split || known.size === known.add(task.id).size);
    const problem = `task ${quoted(wrong?.id ?? '', 60)} is listed twice or in two splits`;
    if (wrong) add('tasks', problem, 'give every task one id and one split');
    const fix = 'list the same tasks in the same order';
    if (!differs('tasks', `tasks(${split}) differs when asked twice`, { one: tasks, other: last, fix }))
      differs('tasks', `tasks(${split}) differs in a second process`, { one: tasks, other: others });
  }
  const samples = samplesOf(lists);
  if (samples.length === 0) return;

  onCheck('starts');
  for (const sample of samples) {
    const { task } = sample;
    const one = await attempt('reset', () => within(first, task, async ({ start }) => start));
    const start = one && (await attempt('reset', () => within(second, task, async ({ start }) => start)));
    if (!one || !start) continue;
    checkStart(one, { description, add });
    const what = `task ${quoted(task, 60)} begins differently when it is reset again with seed ${SEED}`;
    if (differs('reset', what, { one, other: start })) break;
  }
  const stranger = await first.reset({ id: 'no such task', seed: SEED }).catch(() => undefined);
  if (stranger) {
    add('reset', 'an unknown task.id is begun as if it were one', 'answer with an error that names the task');
    await stranger.close().catch(() => undefined);
  }

  onCheck('evaluation of nothing');
  for (const sample of samples) {
    const { task } = sample;
    const one = await attempt('evaluate', () => within(first, task, evaluationOf));
    if (!one) continue;
    sample.untouched = one;
    const other = await attempt('evaluate', () => within(second, task, evaluationOf));
    if (other && differs('evaluate', `the evaluation of task ${task}, left alone, differs`, { one, other })) break;
    if (!hasReference || one.reference) continue;
    const problem = `reference is missing for task ${quoted(task, 60)}, and hasReference is true`;
    add('evaluate', problem, 'return {actions, tell}, or describe hasReference: false');
    break;
  }
  const evaluated = samples.flatMap(({ untouched }) => untouched ?? []);
  const remark = evaluated.map(({ reward }) => nearlyOne(reward)).find(Boolean);
  if (remark) note('evaluate', ...remark);
  const perfect = evaluated.filter(isSuccess).length;
  if (perfect > 0) {
    const problem = `an agent that does nothing has reward 1 on ${perfect} of ${evaluated.length} sampled tasks`;
    const fix = 'see that something is wanted of the agent in most tasks';
    (perfect === samples.length ? add : note)('evaluate', problem, fix);
  }

  onCheck('independent episodes');
  const { task, untouched } = richest(samples);
  const script = busyScript(description, untouched?.reference);
  await attempt('step (independent episodes)', async () => {
    const one = await within(second, task, (episode) => play(episode, script));
    const all = Array.from({ length: SIDE_BY_SIDE }, () => within(first, task, (episode) => play(episode, script)));
    const what = `task ${task}, played ${SIDE_BY_SIDE} times side by side, is answered differently`;
    if ((await Promise.all(all)).some((other) => differs('step', what, { one, other, fix: STATE_FIX }))) return;
    const other = untouched && (await within(first, task, evaluationOf));
    const left = `task ${task}, left alone after another episode has written, is evaluated differently`;
    differs('step', left, { one: untouched, other, fix: STATE_FIX });
  });

  onCheck('mistakes of the agent');
  for (const [what, message] of mistakes(description, script)) {
    const check = `step: ${what}`;
    await attempt(check, () => within(first, task, (episode) => episode.step(message)));
  }

  onCheck('reference actions');
  for (const { task, untouched } of samples) {
    if (!untouched?.reference || isUserPlayed()) continue;
    const { reference } = untouched;
    const problem = await attempt('evaluate (reference actions)', () =>
      within(first, task, (episode) => unsolved(episode, task, reference)),
    );
    if (problem) return add('evaluate', problem, SOLVED_FIX);
  }
  if (isUserPlayed())
    note('evaluate', 'reference actions were not played: a simulated user takes part', 'play a task by hand');
}

/** Chooses tasks spread over each list, so that they are of several kinds, and alternates between the splits. */
function samplesOf(lists: ReadonlyMap<Split, readonly Task[]>): Sample[] {
  return Array.from({ length: SAMPLES }, (_, n) =>
    [...lists.values()].flatMap((tasks): Sample[] => {
      const count = Math.min(SAMPLES, tasks.length);
      return n < count ? [{ task: tasks[Math.floor((n * tasks.length) / count)]!.id }] : [];
    }),
  ).flat();
}

function checkStart(
  { messages, tools }: ResetResult,
  o: { description: EnvironmentDescription; add: (check: string, problem: string, fix: string) => void },
): void {
  const undescribed = tools.filter(({ name }) => !o.description.tools.some((tool) => tool.name === name));
  const names = quoted(undescribed.map(({ name }) => name).join(', '));
  if (messages.at(-1)?.role !== 'user')
    o.add('reset', 'messages do not end with a user message', 'let the user speak first');
  if (messages[0]?.role !== 'system')
    o.add('reset', 'messages do not begin with the system message', 'begin with the policy');
  if (names) o.add('reset', `tools offers ${names}`, 'offer only tools that describe lists');
}

/** The sampled task with the most reference actions, else the first. */
const richest = (samples: readonly Sample[]): Sample => {
  const actions = ({ untouched }: Sample) => untouched?.reference?.actions.length ?? 0;
  return samples.reduce((best, sample) => (actions(sample) > actions(best) ? sample : best));
};

const NEARLY_ONE = 0.99;

/** Problem and fix to note for a reward that is nearly 1: a sum of weights may miss it by more than rounding. */
export const nearlyOne = (reward: number): [problem: string, fix: string] | undefined =>
  reward === 1 || reward < NEARLY_ONE
    ? undefined
    : [`reward is ${reward}, which is no success`, 'return 1 where all is right'];
