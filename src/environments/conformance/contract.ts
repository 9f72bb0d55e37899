/**
 * What an environment says: describe, tasks, reset and evaluate, its reference actions, and rewards for words alone.
 */
import {
  type Environment,
  type EnvironmentDescription,
  environmentDescriptionSchema,
  evaluationSchema,
  type Reference,
  type ResetResult,
  resetResultSchema,
  type Split,
  splitSchema,
  type Task,
  taskSchema,
} from '../../domain/environment';
import type { AssistantMessage, ToolSchema } from '../../domain/messages';
import { holdsWords } from '../../sandbox/solution-checks';
import { quoted } from '../connection';
import { toolsProblem, valueProblem } from '../json-schema';
import { policyRulesProblem } from '../policy-rules';
import { firstIssue } from '../protocol';
import {
  callsOf,
  type Checked,
  firstDifference,
  isError,
  observed,
  play,
  type Report,
  type Sample,
  say,
  SEED,
  startOf,
  type TaskLists,
  timely,
  untouchedOf,
} from './probe';

const SHAPE_FIX = 'return this field in the shape of the protocol';

/** False if nothing more can be checked. */
export function checkDescription(description: EnvironmentDescription, { add, addAll, note }: Report): boolean {
  const parsed = environmentDescriptionSchema.safeParse(description);
  if (!parsed.success) {
    add('describe', firstIssue(parsed.error), SHAPE_FIX);
    return false;
  }
  const { policy, tools } = description;
  const malformed = toolsProblem(tools);
  if (malformed) {
    add('describe', `${malformed.path.join('.')}: ${malformed.message}`, 'write it as JSON Schema');
    return false;
  }
  if (tools.length === 0)
    note('describe', 'tools is empty: the agent only talks', 'describe the tools, if there are any that it may call');
  const names = tools.map(({ name }) => name);
  const twice = names.find((name, n) => names.indexOf(name) !== n);
  // A rule of a kind that parts of the method read is wrong here, not where it is read.
  const [rule, ruleFix = ''] = policyRulesProblem(description)?.split('; ') ?? [];
  addAll('describe', [
    [policy.trim() === '', 'policy is empty', "write the agent's rules: they are the system message"],
    [twice !== undefined, `tools holds ${quoted(twice ?? '')} twice`, 'give every tool its own name'],
    ...tools.flatMap(toolRules),
    [rule !== undefined, rule ?? '', ruleFix],
  ]);
  return true;
}

function toolRules({ name, description, parameters }: ToolSchema, n: number) {
  const tool = `(tool ${quoted(name, 60)})`;
  const unknown = (parameters.required ?? []).filter((field) => !(field in (parameters.properties ?? {})));
  const nameFix = 'use up to 64 letters, digits, _ and -, as models can call it';
  const describeFix = 'say what the tool does: it is all that the agent knows of it';
  const required = `parameters.required names ${quoted(unknown.join(', '))} ${tool}`;
  return [
    [!/^[\w-]{1,64}$/.test(name), `tools.${n}.name: "${quoted(name, 60)}"`, nameFix],
    [description.trim() === '', `tools.${n}.description is empty ${tool}`, describeFix],
    [parameters.type !== 'object', `tools.${n}.parameters.type is ${parameters.type} ${tool}`, 'make it "object"'],
    [unknown.length > 0, `tools.${n}.${required}`, 'describe each required field in properties'],
  ] as const;
}

/** The lists; undefined if the train split has no task to begin. */
export async function checkTasks(environment: Environment, { add, attempt }: Report): Promise<TaskLists | undefined> {
  const lists: TaskLists = { train: [], test: [] };
  const splits = new Map<string, Split>();
  for (const split of splitSchema.options) {
    const tasks = await attempt('tasks', () => environment.tasks(split));
    if (tasks === undefined) continue;
    if (tasks.length === 0) add('tasks', `the ${split} split is empty`, 'list at least one task in each split');
    for (const task of tasks) {
      const parsed = taskSchema.safeParse(task);
      if (!parsed.success) return void add('tasks', `${split}: ${firstIssue(parsed.error)}`, 'return {id, split}');
      const [problem, fix = ''] = taskProblem(task, split, splits.get(task.id));
      if (problem !== undefined) {
        add('tasks', problem, fix);
        break;
      }
      splits.set(task.id, split);
    }
    const again = await attempt('tasks', () => environment.tasks(split));
    const difference = again && firstDifference(tasks, again);
    if (difference !== undefined)
      add('tasks', `tasks(${split}) differs when asked twice: ${difference}`, 'list the same tasks in the same order');
    lists[split] = tasks;
  }
  return lists.train.length > 0 ? lists : undefined;
}

function taskProblem(task: Task, split: Split, other: Split | undefined): string[] {
  const id = quoted(task.id, 60);
  if (task.split !== split) return [`tasks(${split}) lists ${id} of split ${task.split}`, `list ${split} tasks only`];
  if (other !== undefined)
    return [`task ${id} is in ${other} and again in ${split}`, 'give every task one id and one split'];
  return [];
}

export async function checkStarts(checked: Checked): Promise<void> {
  const { environment, add, attempt } = checked;
  for (const sample of timely(checked)) {
    const { task } = sample;
    const starts = await attempt('reset', async () => ({
      first: await startOf(environment, task),
      second: await startOf(environment, task),
    }));
    if (!starts) continue;
    sample.start = starts.first;
    const parsed = resetResultSchema.safeParse(starts.first);
    if (!parsed.success) return add('reset', firstIssue(parsed.error), SHAPE_FIX);
    checkStart(starts.first, checked);
    const difference = firstDifference(starts.first, starts.second);
    if (difference === undefined) continue;
    const problem = `task ${quoted(task, 60)} begins differently when reset twice with seed ${SEED}: ${difference}`;
    add('reset', problem, 'draw everything random from task and seed');
    break;
  }
  const unknown = await environment.reset({ id: 'no such task', seed: SEED }).catch(() => undefined);
  if (!unknown) return;
  add('reset', 'an unknown task.id is begun as if it were one', 'answer with an error that names the task');
  await unknown.close().catch(() => undefined);
}

function checkStart({ messages, tools, hint }: ResetResult, { description, addAll }: Checked): void {
  const offered = tools.map(({ name }) => name);
  const undescribed = offered.filter((name) => !description.tools.some((tool) => tool.name === name));
  const named = hint === undefined ? [] : offered.filter((name) => holdsWords(hint, name));
  const [first, last] = [messages[0]?.role, messages.at(-1)?.role];
  const hintFix = 'say what kind of thing to do, and leave calls to the agent';
  addAll('reset', [
    [last !== 'user', 'messages do not end with a user message', 'let the user speak first'],
    [first !== 'system', 'messages do not begin with the system message', 'begin with the policy'],
    [undescribed.length > 0, `tools offers ${quoted(undescribed.join(', '))}`, 'offer only tools that describe lists'],
    [named.length > 0, `hint names the tool ${quoted(named.join(', '))}`, hintFix],
  ]);
}

/** Reward and reference of an episode in which nothing was done. Where that is right in every task, there is nothing to learn. */
export async function checkUntouched(checked: Checked): Promise<void> {
  const { environment, description, samples, add, note, attempt } = checked;
  let judged = 0;
  for (const sample of timely(checked)) {
    const result = await attempt('evaluate', async () => [await untouchedOf(environment, sample.task)]);
    if (!result) continue;
    const [evaluation] = result;
    if (!evaluation) {
      judged++;
      continue;
    }
    const parsed = evaluationSchema.safeParse(evaluation);
    if (!parsed.success)
      return add('evaluate', firstIssue(parsed.error), 'return a finite reward in [0, 1] and a breakdown of numbers');
    sample.untouched = parsed.data;
    const problem = `reference is missing for task ${quoted(sample.task, 60)}, and hasReference is true`;
    if (description.hasReference && !evaluation.reference)
      return add('evaluate', problem, 'return {actions, tell}, or describe hasReference: false');
  }
  const needJudge = `${judged} of ${samples.length} sampled tasks need a judge, which the checks have not`;
  if (judged > 0) note('evaluate', needJudge, 'look at their rewards in a run');
  const rewards = samples.flatMap(({ untouched }) => (untouched ? [untouched.reward] : []));
  const perfect = rewards.filter((reward) => reward === 1).length;
  const problem = `an agent that does nothing has reward 1 on ${perfect} of ${rewards.length} sampled tasks`;
  const say = judged === 0 && perfect === rewards.length ? add : note;
  if (perfect > 0) say('evaluate', problem, 'see that something is wanted of the agent in most tasks');
}

/** Reference actions call tools as described, and who does them has reward 1. */
export async function checkReferences(checked: Checked): Promise<void> {
  const { environment, add, note, attempt, isUserPlayed } = checked;
  let actions: number | undefined;
  for (const { task, untouched } of timely(checked)) {
    const reference = untouched?.reference;
    if (!reference) continue;
    actions = (actions ?? 0) + reference.actions.length;
    const [misfit, fix = ''] = misfitOf(checked.description.tools, task, reference);
    if (misfit !== undefined) return add('evaluate', misfit, fix);
    if (isUserPlayed()) continue;
    const problem = await attempt('evaluate (reference actions)', () => unsolved(environment, task, reference));
    if (problem) return add('evaluate', problem, SOLVED_FIX);
  }
  if (actions === undefined) return;
  if (isUserPlayed())
    note('evaluate', 'reference actions were not played: a simulated user takes part', 'play a task by hand');
  if (actions === 0)
    note('evaluate', 'reference.actions is empty in all sampled tasks', 'tell the writes that a task needs');
}

export const SOLVED_FIX =
  'tell the writes and facts that a solution needs and make the reward 1 for them, or describe hasReference: false';

function misfitOf(tools: readonly ToolSchema[], task: string, { actions }: Reference): string[] {
  for (const [n, { name, arguments: values }] of actions.entries()) {
    const [path, where] = [`reference.actions.${n}`, `of task ${quoted(task, 60)}`];
    const tool = tools.find((each) => each.name === name);
    if (!tool) return [`${path}.name ${where} is "${quoted(name, 60)}", no tool`, 'name a tool that describe lists'];
    const problem = valueProblem(tool.parameters, values);
    const fix = `make the reference and the parameters of ${name} agree`;
    if (problem !== undefined) return [`${path}.arguments.${quoted(problem)} (${name}, ${where})`, fix];
  }
  return [];
}

/** How often the facts are said to a user who goes on asking. */
const WORDS = 3;

/** What came of playing the reference, the needed writes one a message and then the facts; undefined where that was reward 1. */
export async function unsolved(
  environment: Environment,
  task: string,
  { actions, tell }: Reference,
): Promise<string | undefined> {
  const facts = Array<AssistantMessage>(WORDS).fill(say([...tell, 'done .'].join(' . ')));
  const { results, evaluation } = await play(environment, task, [
    ...actions.map((action) => callsOf(action)),
    ...facts,
  ]);
  if (!evaluation || evaluation.reward === 1) return undefined;
  const refused = results.map(observed).find(isError);
  const how = [
    `breakdown ${quoted(JSON.stringify(evaluation.breakdown), 200)}`,
    ...(refused === undefined ? [] : [`a reference action was answered "${quoted(refused, 120)}"`]),
    ...(results.length <= actions.length ? [`the episode was over after ${results.length} messages`] : []),
  ];
  return `reward of task ${quoted(task, 60)} is ${evaluation.reward} for its own reference.actions: ${how.join('; ')}`;
}

const NUMBER = 0.3721;
const NUMBERS = [`${NUMBER}`, `reward: ${NUMBER}`, `{"reward": ${NUMBER}}`];
const CLAIMS = ['success', 'reward: 1', '1', 'All done: I have completed the task successfully.'];
/** One task may ask for just these words; not several. */
const TASKS = 3;

/** Words alone, of whatever kind, earn nothing. */
export async function checkClaims({ environment, attempt, samples, add, note, hasTime }: Checked): Promise<void> {
  const open = samples.filter(({ untouched }) => untouched && untouched.reward < 1).slice(0, TASKS);
  const [first] = open;
  const rewardFor = async ({ task }: Sample, words: string) =>
    (await play(environment, task, [say(words)])).evaluation?.reward ?? 0;
  const winsAll = async (wordsFor: (sample: Sample) => string) => {
    const rewards: number[] = [];
    for (const sample of open) rewards.push(await rewardFor(sample, wordsFor(sample)));
    return rewards.length > 0 && rewards.every((reward) => reward >= 1);
  };
  const fix = 'value what was done, not what is said';

  await attempt('evaluate (words alone)', async () => {
    for (const words of first ? NUMBERS : [])
      if ((await rewardFor(first!, words)) === NUMBER)
        return add('evaluate', `reward is the number that the agent says ("${words}")`, fix);
    for (const words of CLAIMS) {
      if (!hasTime()) return;
      const problem = `reward is 1 on ${open.length} sampled tasks for an agent that only says "${words}"`;
      if (await winsAll(() => words)) return add('evaluate', problem, fix);
    }
  });
  if (!hasTime()) return;
  await attempt("evaluate (the user's words repeated)", async () => {
    const request = ({ start }: Sample) => start?.messages.findLast(({ role }) => role === 'user')?.content ?? '';
    const problem = `reward is 1 on ${open.length} sampled tasks for an agent that repeats the user's words`;
    if (await winsAll(request))
      note('evaluate', problem, 'see that the request does not hold what the agent is to find out');
  });
}
