/** The conformance checks: the description, determinism of starts, rewards and answers, independent episodes, mistakes of an agent, and references. */
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
import {
  busyScript,
  callsOf,
  type Checked,
  factsOf,
  type Player,
  playerOf,
  type Report,
  richest,
  say,
  SEED,
  strict,
  type TaskLists,
  timely,
} from './probe';

export function checkDescription({ policy, tools }: EnvironmentDescription, { addAll, note }: Report): void {
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

function toolRules({ name, parameters }: ToolSchema, n: number) {
  const { required = [], properties = {} } = parameters;
  const unknown = required.filter((field) => !(field in properties));
  const nameFix = 'use up to 64 letters, digits, _ and -, as models can call it';
  const problem = `tools.${n}.parameters.required names ${quoted(unknown.join(', '))} (tool ${quoted(name, 60)})`;
  return [
    [!/^[\w-]{1,64}$/.test(name), `tools.${n}.name: "${quoted(name, 60)}"`, nameFix],
    [unknown.length > 0, problem, 'describe each required field in properties'],
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
    const wrong = tasks.find((task) => task.split !== split || splits.has(task.id));
    for (const { id } of tasks) splits.set(id, split);
    report.addAll('tasks', [
      [tasks.length === 0, `the ${split} split is empty`, 'list at least one task in each split'],
      [
        wrong !== undefined,
        `task ${quoted(wrong?.id ?? '', 60)} is in two splits`,
        'give every task one id and one split',
      ],
      [splits.size < lists.train.length + lists.test.length && !wrong, 'a task is listed twice', 'list it once'],
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
  const undescribed = tools.filter(({ name }) => !description.tools.some((tool) => tool.name === name));
  const names = quoted(undescribed.map(({ name }) => name).join(', '));
  addAll('reset', [
    [messages.at(-1)?.role !== 'user', 'messages do not end with a user message', 'let the user speak first'],
    [messages[0]?.role !== 'system', 'messages do not begin with the system message', 'begin with the policy'],
    [undescribed.length > 0, `tools offers ${names}`, 'offer only tools that describe lists'],
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

/** Parallel episodes, enough to show shared state; fewer for a slow environment. */
const [SIDE_BY_SIDE, OF_A_SLOW_ONE] = [8, 3];
const STATE_FIX = 'keep all state in the episode, copied afresh at reset, and draw nothing from a shared source';

/** Checks that episodes share nothing: in turn and in parallel. */
export async function checkIndependence(checked: Checked): Promise<void> {
  const { play, samples, attempt, hasTime } = checked;
  const { task, untouched } = richest(samples);
  const script = busyScript(checked);
  const playing = () => play(task, script);
  const differs = (what: string, one: unknown, other: unknown): boolean =>
    checked.differs({ check: 'step', what: `task ${task}, ${what}`, fix: STATE_FIX, one, other });
  await attempt('step (independent episodes)', async () => {
    const first = await playing();
    if (differs('played twice in turn, is answered differently', first, await playing())) return;
    const again = untouched && (await checked.untouched(task));
    if (differs('left alone after another episode has written', untouched, again)) return;
    const times = hasTime() ? SIDE_BY_SIDE : OF_A_SLOW_ONE;
    const together = await Promise.all(Array.from({ length: times }, playing));
    together.some((one) => differs(`played ${times} times side by side`, first, one));
  });
}

/** Checks that mistakes, which every policy makes, and several calls at once are answered and are no errors. */
export async function checkMistakes(checked: Checked): Promise<void> {
  const { answer, samples, add, attempt } = checked;
  const { name = 'tool', parameters } = checked.description.tools[0] ?? {};
  const wrong = Object.fromEntries(Object.keys(parameters?.properties ?? {}).map((field) => [field, ['wrong']]));
  const calls = busyScript(checked).flatMap(({ toolCalls = [] }) => toolCalls);
  const messages: Record<string, AssistantMessage> = {
    ...(calls.length > 0 && { '3 calls in one message': callsOf(...[0, 1, 2].map((n) => calls[n % calls.length]!)) }),
    'a call of an unknown tool': callsOf({ name: 'no_such_tool', arguments: {} }),
    'a call without arguments': callsOf({ name, arguments: {} }),
    'arguments of a wrong type': callsOf({ name, arguments: { ...wrong, unexpected: { nested: [null] } } }),
    'neither text nor calls': say(''),
  };
  for (const [what, message] of Object.entries(messages)) {
    const check = `step: ${what}`;
    const result = await attempt(check, () => answer(richest(samples).task, message));
    if (result && !message.toolCalls && !result.done && result.messages.length === 0)
      add(check, 'messages is empty and done is false', 'let the user answer, or end the episode');
  }
}

/** Checks that playing the reference actions earns reward 1. */
export async function checkReferences(checked: Checked): Promise<void> {
  const { add, note, attempt, isUserPlayed } = checked;
  let count = 0;
  for (const { task, untouched } of timely(checked)) {
    const reference = untouched?.reference;
    if (!reference || isUserPlayed()) continue;
    count += 1;
    const problem = await attempt('evaluate (reference actions)', () => unsolved(checked, task, reference));
    if (problem) return add('evaluate', problem, SOLVED_FIX);
  }
  if (count === 0 && isUserPlayed())
    note('evaluate', 'reference actions were not played: a simulated user takes part', 'play a task by hand');
}

const SOLVED_FIX =
  'tell the writes and facts that a solution needs and make the reward 1 for them, or describe hasReference: false';

/** How often the facts are said to a user who keeps asking. */
const WORDS = 3;

/** Plays the reference: the needed writes, one in each message, then the facts. Returns what went wrong; undefined if the reward is 1. */
async function unsolved({ play }: Player, task: string, reference: Reference): Promise<string | undefined> {
  const facts = Array<AssistantMessage>(WORDS).fill(say(factsOf(reference)));
  const script = [...reference.actions.map((action) => callsOf(action)), ...facts];
  const { results, evaluation } = await play(task, script);
  if (!evaluation || isSuccess(evaluation)) return undefined;
  const answers = results.flatMap(({ messages }) =>
    messages.flatMap(({ role, content }) => (role === 'tool' ? [content] : [])),
  );
  const seen = answers.length === 0 ? '' : `, answered "${quoted(answers.join(' | '), 200)}"`;
  const breakdown = quoted(JSON.stringify(evaluation.breakdown), 200);
  return `reward of task ${quoted(task, 60)} is ${evaluation.reward} for its own reference.actions: breakdown ${breakdown}${seen}`;
}

const NUMBER = 0.3721;
const CLAIMS = [`reward: ${NUMBER}`, 'success', 'reward: 1', 'All done: I have completed the task successfully.'];
/** One task may ask for just these words; not several. */
const TASKS = 3;

/** Checks that words alone earn nothing. */
export async function checkClaims({ play, attempt, samples, add, hasTime }: Checked): Promise<void> {
  const open = samples.filter(({ untouched }) => untouched && !isSuccess(untouched)).slice(0, TASKS);
  await attempt('evaluate (words alone)', async () => {
    for (const words of CLAIMS) {
      if (!hasTime()) return;
      const rewards: (number | undefined)[] = [];
      for (const { task } of open) rewards.push((await play(task, [say(words)])).evaluation?.reward);
      if (rewards.length > 0 && rewards.every((reward) => reward === 1 || reward === NUMBER))
        return add('evaluate', `reward is ${rewards[0]} for an agent that only says "${words}"`, 'value what was done');
    }
  });
}

const SECOND = 'second process';
const PROCESS_FIX =
  'derive it from task and seed: no process id, no clock, no order of a set or a hash that changes with the process';

/** Checks that a second process gives the same answers. Problems of one process are not reported again. */
export async function checkSecondProcess(checked: Checked, again: () => Promise<Environment>): Promise<void> {
  const { description, lists, samples, findings, attempt, differs } = checked;
  const second = await attempt(SECOND, async () => strict(await again()));
  if (!second) return;
  const other = playerOf(second);
  async function compare(method: string, what: string, one: unknown, ask: () => Promise<unknown>): Promise<void> {
    if (one === undefined || findings.some(({ check }) => check.startsWith(method))) return;
    const answer = await attempt(`${method} (${SECOND})`, ask);
    if (answer === undefined) return;
    differs({ check: method, what: `${what} differs in a second process`, fix: PROCESS_FIX, one, other: answer });
  }
  try {
    await compare('describe', 'the description', description, () => second.describe());
    for (const split of splitSchema.options)
      await compare('tasks', `tasks(${split})`, lists[split], () => second.tasks(split));
    for (const one of timely(checked)) {
      await compare('reset', `the start of task ${one.task}`, one.start, () => other.start(one.task));
      const what = `the evaluation of task ${one.task}, left alone,`;
      await compare('evaluate', what, one.untouched, () => other.untouched(one.task));
    }
    if (findings.some(({ check }) => check.startsWith('step') || check.startsWith('reset'))) return;
    const { task } = richest(samples);
    const script = busyScript(checked);
    const played = await attempt('step', () => checked.play(task, script));
    await compare('step', `task ${task}, played,`, played, () => other.play(task, script));
  } finally {
    await second.close().catch(() => undefined);
  }
}
