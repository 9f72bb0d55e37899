/**
 * Checks what an environment declares: describe, tasks, reset and evaluate, its reference actions, and rewards for words alone.
 */
import {
  type Environment,
  type EnvironmentDescription,
  type Reference,
  type ResetResult,
  type Split,
  splitSchema,
} from '../../domain/environment';
import type { AssistantMessage, ToolSchema } from '../../domain/messages';
import { isSuccess } from '../../domain/rollout';
import { quoted } from '../protocol';
import { valueProblem } from '../json-schema';
import {
  callsOf,
  type Checked,
  isError,
  observed,
  type Player,
  type Report,
  type Sample,
  say,
  SEED,
  type TaskLists,
  timely,
} from './probe';

export function checkDescription(description: EnvironmentDescription, { addAll, note }: Report): void {
  const { policy, tools } = description;
  if (tools.length === 0)
    note('describe', 'tools is empty: the agent only talks', 'describe the tools, if there are any that it may call');
  const names = tools.map(({ name }) => name);
  const twice = names.find((name, n) => names.indexOf(name) !== n);
  addAll('describe', [
    [policy.trim() === '', 'policy is empty', "write the agent's rules: they are the system message"],
    [twice !== undefined, `tools holds ${quoted(twice ?? '')} twice`, 'give every tool its own name'],
    ...tools.flatMap(toolRules),
  ]);
}

function toolRules({ name, description, parameters }: ToolSchema, n: number) {
  const { type, required = [], properties = {} } = parameters;
  const tool = `(tool ${quoted(name, 60)})`;
  const unknown = required.filter((field) => !(field in properties));
  const requiredProblem = `tools.${n}.parameters.required names ${quoted(unknown.join(', '))} ${tool}`;
  const nameFix = 'use up to 64 letters, digits, _ and -, as models can call it';
  const describeFix = 'say what the tool does: it is all that the agent knows of it';
  return [
    [!/^[\w-]{1,64}$/.test(name), `tools.${n}.name: "${quoted(name, 60)}"`, nameFix],
    [description.trim() === '', `tools.${n}.description is empty ${tool}`, describeFix],
    [type !== 'object', `tools.${n}.parameters.type is ${type} ${tool}`, 'make it "object"'],
    [unknown.length > 0, requiredProblem, 'describe each required field in properties'],
  ] as const;
}

/** Returns the lists of tasks; undefined if the train split is empty. */
export async function checkTasks(environment: Environment, report: Report): Promise<TaskLists | undefined> {
  const lists: TaskLists = { train: [], test: [] };
  const splits = new Map<string, Split>();
  for (const split of splitSchema.options) {
    const listed = await report.attempt('tasks', async () => [
      await environment.tasks(split),
      await environment.tasks(split),
    ]);
    const [tasks, again] = listed ?? [];
    if (!tasks) continue;
    lists[split] = tasks;
    const stray = tasks.find((task) => task.split !== split);
    const strayProblem = `tasks(${split}) lists ${quoted(stray?.id ?? '', 60)} of split ${stray?.split}`;
    let twice: string | undefined;
    for (const { id } of tasks) {
      const other = splits.get(id);
      if (other) twice ??= `task ${quoted(id, 60)} is in ${other} and again in ${split}`;
      splits.set(id, split);
    }
    report.addAll('tasks', [
      [tasks.length === 0, `the ${split} split is empty`, 'list at least one task in each split'],
      [stray !== undefined, strayProblem, `list ${split} tasks only`],
      [twice !== undefined, twice ?? '', 'give every task one id and one split'],
    ]);
    const fix = 'list the same tasks in the same order';
    report.differs({ check: 'tasks', what: `tasks(${split}) differs when asked twice`, fix, one: tasks, other: again });
  }
  return lists.train.length > 0 ? lists : undefined;
}

export async function checkStarts(checked: Checked): Promise<void> {
  const { open, start, add, attempt, differs } = checked;
  for (const sample of timely(checked)) {
    const { task } = sample;
    const begin = async () => [await start(task), await start(task)];
    const [one, other] = (await attempt('reset', begin)) ?? [];
    if (!one) continue;
    sample.start = one;
    checkStart(one, checked);
    const what = `task ${quoted(task, 60)} begins differently when reset twice with seed ${SEED}`;
    if (differs({ check: 'reset', what, fix: 'draw everything random from task and seed', one, other })) break;
  }
  const unknown = await open('no such task').catch(() => undefined);
  if (!unknown) return;
  add('reset', 'an unknown task.id is begun as if it were one', 'answer with an error that names the task');
  await unknown.close().catch(() => undefined);
}

function checkStart({ messages, tools }: ResetResult, { description, addAll }: Checked): void {
  const offered = tools.map(({ name }) => name);
  const undescribed = offered.filter((name) => !description.tools.some((tool) => tool.name === name));
  const [first, last] = [messages[0]?.role, messages.at(-1)?.role];
  addAll('reset', [
    [last !== 'user', 'messages do not end with a user message', 'let the user speak first'],
    [first !== 'system', 'messages do not begin with the system message', 'begin with the policy'],
    [undescribed.length > 0, `tools offers ${quoted(undescribed.join(', '))}`, 'offer only tools that describe lists'],
  ]);
}

/** Checks reward and reference of an episode without an action. If that solves every task, there is nothing to learn. */
export async function checkUntouched(checked: Checked): Promise<void> {
  const { untouched: evaluate, description, samples, add, note, attempt } = checked;
  let judged = 0;
  for (const sample of timely(checked)) {
    const evaluated = await attempt('evaluate', async () => [await evaluate(sample.task)]);
    if (!evaluated) continue;
    const [untouched] = evaluated;
    if (untouched) sample.untouched = untouched;
    else judged++;
    const problem = `reference is missing for task ${quoted(sample.task, 60)}, and hasReference is true`;
    if (untouched && description.hasReference && !untouched.reference)
      return add('evaluate', problem, 'return {actions, tell}, or describe hasReference: false');
  }
  const needJudge = `${judged} of ${samples.length} sampled tasks need a judge, which the checks have not`;
  if (judged > 0) note('evaluate', needJudge, 'look at their rewards in a run');
  const rewards = samples.flatMap(({ untouched }) => (untouched ? [untouched.reward] : []));
  const perfect = rewards.filter((reward) => isSuccess({ reward })).length;
  const problem = `an agent that does nothing has reward 1 on ${perfect} of ${rewards.length} sampled tasks`;
  const report = judged === 0 && perfect === rewards.length ? add : note;
  if (perfect > 0) report('evaluate', problem, 'see that something is wanted of the agent in most tasks');
}

/** Checks that reference actions fit the tools and that playing them earns reward 1. */
export async function checkReferences(checked: Checked): Promise<void> {
  const { add, note, attempt, isUserPlayed } = checked;
  const references: Reference[] = [];
  for (const { task, untouched } of timely(checked)) {
    const reference = untouched?.reference;
    if (!reference) continue;
    references.push(reference);
    const [misfit, fix = ''] = misfitOf(checked.description.tools, task, reference);
    if (misfit !== undefined) return add('evaluate', misfit, fix);
    if (isUserPlayed()) continue;
    const problem = await attempt('evaluate (reference actions)', () => unsolved(checked, task, reference));
    if (problem) return add('evaluate', problem, SOLVED_FIX);
  }
  if (references.length === 0) return;
  if (isUserPlayed())
    note('evaluate', 'reference actions were not played: a simulated user takes part', 'play a task by hand');
  if (references.every(({ actions }) => actions.length === 0))
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

/** How often the facts are said to a user who keeps asking. */
const WORDS = 3;

/** Plays the reference: the needed writes, one in each message, then the facts. Returns what went wrong; undefined if the reward is 1. */
export async function unsolved(
  { play }: Player,
  task: string,
  { actions, tell }: Reference,
): Promise<string | undefined> {
  const facts = Array<AssistantMessage>(WORDS).fill(say([...tell, 'done .'].join(' . ')));
  const script = [...actions.map((action) => callsOf(action)), ...facts];
  const { results, evaluation } = await play(task, script);
  if (!evaluation || isSuccess(evaluation)) return undefined;
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

const requestOf = ({ start }: Sample): string => start?.messages.findLast(({ role }) => role === 'user')?.content ?? '';

/** Checks that words alone earn nothing. */
export async function checkClaims({ play, attempt, samples, add, note, hasTime }: Checked): Promise<void> {
  const open = samples.filter(({ untouched }) => untouched && !isSuccess(untouched)).slice(0, TASKS);
  const rewardFor = async ({ task }: Sample, words: string) => (await play(task, [say(words)])).evaluation?.reward ?? 0;
  async function winsAll(wordsFor: (sample: Sample) => string): Promise<boolean> {
    for (const sample of open) if (!isSuccess({ reward: await rewardFor(sample, wordsFor(sample)) })) return false;
    return open.length > 0;
  }
  const won = `reward is 1 on ${open.length} sampled tasks for an agent that`;
  const fix = 'value what was done, not what is said';
  await attempt('evaluate (words alone)', async () => {
    for (const words of NUMBERS)
      if (open[0] && (await rewardFor(open[0], words)) === NUMBER)
        return add('evaluate', `reward is the number that the agent says ("${words}")`, fix);
    for (const words of CLAIMS)
      if (hasTime() && (await winsAll(() => words))) return add('evaluate', `${won} only says "${words}"`, fix);
    const requestFix = 'see that the request does not hold what the agent is to find out';
    if (hasTime() && (await winsAll(requestOf))) note('evaluate', `${won} repeats the user's words`, requestFix);
  });
}
