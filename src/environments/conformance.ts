/**
 * Does an environment keep its contract (docs/environments.md)? Invariant: every check runs against the environment itself, and a
 * finding says what is wrong and how to mend it. No findings: the engine can use it.
 */
import {
  environmentDescriptionSchema,
  splitSchema,
  taskSchema,
  type Environment,
  type EnvironmentDescription,
} from '../domain/environment';
import { checkBadCalls, checkEvaluation, checkParallel, checkReset } from './episode-checks';
import { attempt, type Add, type Finding } from './finding';
import { policyRulesProblem } from './policy-rules';
import { firstIssue } from './protocol';

export type { Finding };

/** Runs all checks; a check that can't run because an earlier one failed is left out. The environment stays open. */
export async function checkEnvironment(environment: Environment): Promise<Finding[]> {
  const findings: Finding[] = [];
  const add: Add = (check, problem, fix) => void findings.push({ check, problem, fix });

  const description = await attempt('describe', add, () => environment.describe());
  if (description === undefined) return findings;
  checkDescription(description, add);
  checkRules(description, add);
  const task = await checkTasks(environment, add);
  if (task === undefined) return findings;
  for (const check of [checkReset, checkBadCalls, checkEvaluation, checkParallel]) {
    await check({ environment, task, description, add });
  }
  return findings;
}

function checkDescription(description: EnvironmentDescription, add: Add): void {
  const parsed = environmentDescriptionSchema.safeParse(description);
  if (!parsed.success)
    return add('describe', firstIssue(parsed.error), 'return this field in the shape of the protocol');
  if (description.policy.trim() === '')
    add('describe', 'policy is empty', "write the agent's rules: they are the system message");
  const names = description.tools.map(({ name }) => name);
  const twice = names.find((name, n) => names.indexOf(name) !== n);
  if (twice !== undefined) add('describe', `tools holds ${twice} twice`, 'give every tool its own name');
  for (const { name, parameters } of description.tools) {
    const unknown = (parameters.required ?? []).filter((field) => !(field in (parameters.properties ?? {})));
    if (parameters.type !== 'object')
      add('describe', `tool ${name}: parameters.type is ${parameters.type}`, 'make it "object"');
    if (unknown.length > 0) {
      add(
        'describe',
        `tool ${name}: required names ${unknown.join(', ')}`,
        'describe each required field in properties',
      );
    }
  }
}

/** A rule of a kind that parts of the method read is wrong here, not where it is read. */
function checkRules(description: EnvironmentDescription, add: Add): void {
  const problem = policyRulesProblem(description);
  if (problem === undefined) return;
  const [what = '', fix = ''] = problem.split('; ');
  add('describe', what, fix);
}

/** The first task of the train split; undefined if there is none. */
async function checkTasks(environment: Environment, add: Add): Promise<string | undefined> {
  const seen = new Map<string, string>();
  let first: string | undefined;
  for (const split of splitSchema.options) {
    const tasks = await attempt('tasks', add, () => environment.tasks(split));
    if (tasks === undefined) continue;
    if (tasks.length === 0) add('tasks', `the ${split} split is empty`, 'list at least one task in each split');
    for (const task of tasks) {
      const parsed = taskSchema.safeParse(task);
      if (!parsed.success) return void add('tasks', `${split}: ${firstIssue(parsed.error)}`, 'return {id, split}');
      if (task.split !== split)
        add('tasks', `tasks(${split}) lists ${task.id} of split ${task.split}`, `list ${split} tasks only`);
      const other = seen.get(task.id);
      if (other !== undefined)
        add('tasks', `task ${task.id} is in ${other} and again in ${split}`, 'give every task one id and one split');
      seen.set(task.id, split);
    }
    if (split === 'train') first = tasks[0]?.id;
  }
  return first;
}
