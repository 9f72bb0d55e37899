/**
 * The answers of `describe`, `tasks`, `reset` and of an `evaluate` right after it: their shapes, two splits that share nothing, and starts that depend
 * on task and seed alone.
 */
import {
  type Environment,
  type EnvironmentDescription,
  environmentDescriptionSchema,
  type Evaluation,
  evaluationSchema,
  type ResetResult,
  resetResultSchema,
  type Split,
  splitSchema,
  type Task,
  taskSchema,
} from '../../domain/environment';
import { holdsWords } from '../../sandbox/solution-checks';
import { quoted } from '../connection';
import { toolsProblem } from '../json-schema';
import { policyRulesProblem } from '../policy-rules';
import { firstIssue } from '../protocol';
import { type Checked, type Findings, firstDifference, SAMPLES, SEED, valued, withEpisode } from './probe';

/** False if nothing more can be checked. */
export function checkDescription(description: EnvironmentDescription, { add, note }: Findings): boolean {
  const parsed = environmentDescriptionSchema.safeParse(description);
  if (!parsed.success) {
    add('describe', firstIssue(parsed.error), 'return this field in the shape of the protocol');
    return false;
  }
  const malformed = toolsProblem(description.tools);
  if (malformed) {
    add('describe', `${malformed.path.join('.')}: ${malformed.message}`, 'write it as JSON Schema');
    return false;
  }
  if (description.policy.trim() === '')
    add('describe', 'policy is empty', "write the agent's rules: they are the system message");
  if (description.tools.length === 0)
    note('describe', 'tools is empty: the agent only talks', 'describe the tools, if there are any that it may call');
  const names = description.tools.map(({ name }) => name);
  const twice = names.find((name, n) => names.indexOf(name) !== n);
  if (twice !== undefined) add('describe', `tools holds ${quoted(twice)} twice`, 'give every tool its own name');
  for (const [n, tool] of description.tools.entries()) checkTool(tool, `tools.${n}`, add);
  checkRules(description, add);
  return true;
}

function checkTool(
  { name, description, parameters }: EnvironmentDescription['tools'][number],
  path: string,
  add: Findings['add'],
): void {
  const of = `(tool ${quoted(name, 60)})`;
  if (!/^[\w-]{1,64}$/.test(name))
    add(
      'describe',
      `${path}.name: "${quoted(name, 60)}"`,
      'use up to 64 letters, digits, _ and -, as models can call it',
    );
  if (description.trim() === '')
    add(
      'describe',
      `${path}.description is empty ${of}`,
      'say what the tool does: it is all that the agent knows of it',
    );
  if (parameters.type !== 'object')
    add('describe', `${path}.parameters.type is ${parameters.type} ${of}`, 'make it "object"');
  const unknown = (parameters.required ?? []).filter((field) => !(field in (parameters.properties ?? {})));
  if (unknown.length > 0) {
    add(
      'describe',
      `${path}.parameters.required names ${quoted(unknown.join(', '))} ${of}`,
      'describe each required field in properties',
    );
  }
}

/** A rule of a kind that parts of the method read is wrong here, not where it is read. */
function checkRules(description: EnvironmentDescription, add: Findings['add']): void {
  const problem = policyRulesProblem(description);
  if (problem === undefined) return;
  const [what = '', fix = ''] = problem.split('; ');
  add('describe', what, fix);
}

export type Lists = Record<Split, Task[]>;

/** The lists; undefined if the train split has no task to begin. */
export async function checkTasks(environment: Environment, { add, attempt }: Findings): Promise<Lists | undefined> {
  const lists: Lists = { train: [], test: [] };
  const seen = new Map<string, Split>();
  for (const split of splitSchema.options) {
    const tasks = await attempt('tasks', () => environment.tasks(split));
    if (tasks === undefined) continue;
    if (tasks.length === 0) add('tasks', `the ${split} split is empty`, 'list at least one task in each split');
    for (const task of tasks) {
      const parsed = taskSchema.safeParse(task);
      if (!parsed.success) return void add('tasks', `${split}: ${firstIssue(parsed.error)}`, 'return {id, split}');
      const problem = problemOf({ task, split, other: seen.get(task.id) });
      if (problem) {
        add('tasks', problem.what, problem.fix);
        break;
      }
      seen.set(task.id, split);
    }
    const again = await attempt('tasks', () => environment.tasks(split));
    const difference = again && firstDifference(tasks, again);
    if (difference !== undefined)
      add('tasks', `tasks(${split}) differs when asked twice: ${difference}`, 'list the same tasks in the same order');
    lists[split] = tasks;
  }
  return lists.train.length > 0 ? lists : undefined;
}

function problemOf({ task, split, other }: { task: Task; split: Split; other: Split | undefined }) {
  const id = quoted(task.id, 60);
  if (task.split !== split)
    return { what: `tasks(${split}) lists ${id} of split ${task.split}`, fix: `list ${split} tasks only` };
  if (other !== undefined)
    return { what: `task ${id} is in ${other} and again in ${split}`, fix: 'give every task one id and one split' };
  return undefined;
}

/** Spread over the list, so that tasks of several kinds are among them. */
export function sampled(tasks: readonly Task[]): Task[] {
  const count = Math.min(SAMPLES, tasks.length);
  return Array.from({ length: count }, (_, n) => tasks[Math.floor((n * tasks.length) / count)]!);
}

export async function checkStarts({
  environment,
  description,
  samples,
  add,
  attempt,
  hasTime,
}: Checked): Promise<void> {
  for (const [n, sample] of samples.entries()) {
    if (n > 1 && !hasTime()) break;
    const { task } = sample;
    const starts = await attempt('reset', async () => [
      await startOf({ environment, task }),
      await startOf({ environment, task }),
    ]);
    if (!starts) continue;
    const [start] = starts as [ResetResult, ResetResult];
    sample.start = start;
    const parsed = resetResultSchema.safeParse(start);
    if (!parsed.success) {
      add('reset', firstIssue(parsed.error), 'return this field in the shape of the protocol');
      return;
    }
    const difference = firstDifference(...(starts as [ResetResult, ResetResult]));
    checkStart(start, description, add);
    if (difference === undefined) continue;
    const problem = `task ${quoted(task, 60)} begins differently when reset twice with seed ${SEED}: ${difference}`;
    add('reset', problem, 'draw everything random from task and seed');
    break;
  }
  await environment.reset({ id: 'no such task', seed: SEED }).then(
    async (episode) => {
      add('reset', 'an unknown task.id is begun as if it were one', 'answer with an error that names the task');
      await episode.close().catch(() => undefined);
    },
    () => undefined,
  );
}

export const startOf = (o: { environment: Environment; task: string }): Promise<ResetResult> =>
  withEpisode(o, async ({ start }) => start);

function checkStart(start: ResetResult, description: Checked['description'], add: Checked['add']): void {
  if (start.messages.at(-1)?.role !== 'user')
    add('reset', 'messages do not end with a user message', 'let the user speak first');
  if (start.messages[0]?.role !== 'system')
    add('reset', 'messages do not begin with the system message', 'begin with the policy');
  const offered = start.tools.map(({ name }) => name);
  const undescribed = offered.filter((name) => !description.tools.some((tool) => tool.name === name));
  if (undescribed.length > 0)
    add('reset', `tools offers ${quoted(undescribed.join(', '))}`, 'offer only tools that describe lists');
  const { hint } = start;
  const called = hint === undefined ? [] : offered.filter((name) => holdsWords(hint, name));
  if (called.length > 0)
    add(
      'reset',
      `hint names the tool ${quoted(called.join(', '))}`,
      'say what kind of thing to do, and leave calls to the agent',
    );
}

/** Reward and reference of an episode in which nothing was done. */
export async function checkUntouched(checked: Checked): Promise<void> {
  const { environment, description, samples, add, note, attempt, hasTime } = checked;
  let judged = 0;
  for (const [n, sample] of samples.entries()) {
    if (n > 1 && !hasTime()) break;
    const valued = await attempt('evaluate', async () => ({
      evaluation: await untouched({ environment, task: sample.task }),
    }));
    if (!valued) continue;
    const { evaluation } = valued;
    if (!evaluation) {
      judged++;
      continue;
    }
    const parsed = evaluationSchema.safeParse(evaluation);
    if (!parsed.success) {
      add('evaluate', firstIssue(parsed.error), 'return a finite reward in [0, 1] and a breakdown of numbers');
      return;
    }
    sample.untouched = parsed.data;
    if (description.hasReference && !evaluation.reference) {
      add(
        'evaluate',
        `reference is missing for task ${quoted(sample.task, 60)}, and hasReference is true`,
        'return {actions, tell}, or describe hasReference: false',
      );
      return;
    }
  }
  if (judged > 0)
    note(
      'evaluate',
      `${judged} of ${samples.length} sampled tasks need a judge, which the checks have not`,
      'look at their rewards in a run',
    );
  checkIdle(checked, judged);
}

export const untouched = (o: { environment: Environment; task: string }): Promise<Evaluation | undefined> =>
  withEpisode(o, (episode) => valued(episode, 'agent_stop'));

/** Where doing nothing is right in every task, no agent fails and there is nothing to learn. */
function checkIdle({ add, note, samples }: Checked, judged: number): void {
  const rewards = samples.flatMap((sample) => (sample.untouched ? [sample.untouched.reward] : []));
  const perfect = rewards.filter((reward) => reward === 1).length;
  if (perfect > 0)
    (judged === 0 && perfect === rewards.length ? add : note)(
      'evaluate',
      `an agent that does nothing has reward 1 on ${perfect} of ${rewards.length} sampled tasks`,
      'see that something is wanted of the agent in most tasks',
    );
}
