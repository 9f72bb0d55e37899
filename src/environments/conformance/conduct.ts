/** Checks what an environment does: calls that are right, wrong or several at once, and episodes that share nothing. */
import { type Environment, type Episode, splitSchema, type StepResult } from '../../domain/environment';
import type { AssistantMessage } from '../../domain/messages';
import { quoted } from '../protocol';
import { SOLVED_FIX, unsolved } from './declared';
import {
  busyScript,
  callsOf,
  type Checked,
  isError,
  isRead,
  observed,
  playerOf,
  playIn,
  richest,
  say,
  strict,
  timely,
  validCall,
} from './probe';

/** Tools whose calls are tried, writes first. */
const TOOLS = 8;
const SEVERAL = 3;
const UNKNOWN_TOOL = callsOf({ name: 'no_such_tool', arguments: {} });

/** Returns the answer to a message in an episode of its own; undefined if it breaks the protocol. */
async function answered(checked: Checked, what: string, message: AssistantMessage): Promise<StepResult | undefined> {
  const { answer, samples, add, attempt } = checked;
  const check = `step: ${what}`;
  const result = await attempt(check, () => answer(richest(samples).task, message));
  if (result && !message.toolCalls && !result.done && result.messages.length === 0)
    add(check, 'messages is empty and done is false', 'let the user answer, or end the episode');
  return result;
}

function callable({ description: { tools }, samples }: Checked) {
  const actions = richest(samples).untouched?.reference?.actions;
  const writesFirst = [...tools.filter((tool) => !isRead(tool)), ...tools.filter(isRead)];
  return writesFirst.slice(0, TOOLS).flatMap((tool) => {
    const call = validCall(tool, actions);
    return call ? [{ tool, call }] : [];
  });
}

/** Checks that several calls in one message are all answered, in order, under their ids. */
export async function checkSeveralCalls(checked: Checked): Promise<void> {
  const calls = callable(checked).reverse();
  if (calls.length === 0) return;
  const several = Array.from({ length: SEVERAL }, (_, n) => calls[n % calls.length]!.call);
  await answered(checked, `${SEVERAL} calls in one message`, callsOf(...several));
}

/** Checks that mistakes of the agent, which every policy makes, are answered and are no errors. */
export async function checkBadCalls(checked: Checked): Promise<void> {
  const { name = 'tool', parameters } = checked.description.tools[0] ?? {};
  const wrong = Object.fromEntries(Object.keys(parameters?.properties ?? {}).map((field) => [field, ['wrong']]));
  const mistakes: Record<string, AssistantMessage> = {
    'a call of an unknown tool': UNKNOWN_TOOL,
    'a call without arguments': callsOf({ name, arguments: {} }),
    'arguments of a wrong type': callsOf({ name, arguments: { ...wrong, unexpected: { nested: [null] } } }),
    'neither text nor calls': say(''),
  };
  for (const [what, message] of Object.entries(mistakes)) await answered(checked, what, message);
}

const SAY_VALUES =
  'tell reference actions, or describe the arguments by enum, pattern or range, so that it can be checked';

/** Checks that the described tools exist and that one that writes can succeed. */
export async function checkValidCalls(checked: Checked): Promise<void> {
  const { add, note } = checked;
  const unknown = await answered(checked, 'a call of an unknown tool', UNKNOWN_TOOL);
  const refusal = unknown && observed(unknown).replaceAll('no_such_tool', '');
  const failed: string[] = [];
  let written = false;
  for (const [n, { tool, call }] of callable(checked).entries()) {
    if (n > 1 && !checked.hasTime()) break;
    const check = `a valid call of ${tool.name}`;
    const result = await answered(checked, check, callsOf(call));
    if (!result) continue;
    const text = observed(result);
    const said = `"${quoted(text, 80)}"`;
    if (!isRead(tool)) {
      if (isError(text)) failed.push(`${tool.name}(${quoted(JSON.stringify(call.arguments), 80)}): ${said}`);
      else written = true;
    }
    if (refusal && isError(refusal) && text.replaceAll(tool.name, '') === refusal) {
      const problem = `messages.0.content is ${said}, as for a tool that does not exist`;
      const fix = `run ${tool.name}, which describe lists; say of a tool that you don't have that it is unknown`;
      add(`step: ${check}`, problem, fix);
    }
  }
  const problem = `no call of a tool that writes was seen to succeed: ${failed.slice(0, 2).join('; ')}`;
  if (!written && failed.length > 0) note('step', problem, SAY_VALUES);
}

/** Parallel episodes, enough to show shared state; fewer for a slow environment. */
const [SIDE_BY_SIDE, OF_A_SLOW_ONE] = [8, 3];
const STATE_FIX = 'keep all state in the episode, copied afresh at reset, and draw nothing from a shared source';

/** Checks that episodes share nothing: in turn, interleaved and in parallel. */
export async function checkIndependence(checked: Checked): Promise<void> {
  const { open, play, samples, attempt, hasTime } = checked;
  const { task, untouched } = richest(samples);
  const script = busyScript(checked);
  const playing = () => play(task, script);
  const differs = (what: string, one: unknown, other: unknown): boolean =>
    checked.differs({ check: 'step', what: `task ${task}, ${what}`, fix: STATE_FIX, one, other });

  await attempt('reset', () => beginAmongOpen(() => open(task)));
  await attempt('step (episodes in turn)', async () => {
    const first = await playing();
    if (differs('played twice in turn, is answered differently', first, await playing())) return;
    const again = untouched && (await checked.untouched(task));
    if (differs('left alone after another episode has written', untouched, again)) return;
    const [writing, waiting] = [await open(task), await open(task)];
    const [written, waited] = [await playIn(writing, script), await playIn(waiting, script)];
    await Promise.all([writing.close(), waiting.close()]);
    if (differs('played while another episode is open', first, written)) return;
    if (differs('open while another episode wrote', first, waited)) return;
    const times = hasTime() ? SIDE_BY_SIDE : OF_A_SLOW_ONE;
    const together = await Promise.all(Array.from({ length: times }, playing));
    together.some((one) => differs(`played ${times} times side by side`, first, one));
  });
}

/** Opens and closes episodes so that an id that counts the open ones would be used twice, which the connection refuses. */
async function beginAmongOpen(begin: () => Promise<Episode>): Promise<void> {
  const open: Episode[] = [];
  try {
    open.push(await begin());
    open.push(await begin());
    await open.shift()!.close();
    open.push(await begin());
  } finally {
    for (const episode of open) await episode.close().catch(() => undefined);
  }
}

const SECOND = 'second process';
const PROCESS_FIX =
  'derive it from task and seed: no process id, no clock, no order of a set or a hash that changes with the process';

/** Checks that a second process gives the same answers. Problems of one process are not reported again. */
export async function checkSecondProcess(checked: Checked, again: () => Promise<Environment>): Promise<void> {
  const { description, lists, samples, findings, add, attempt, differs, isUserPlayed } = checked;
  const second = await attempt(SECOND, async () => strict(await again()));
  if (!second) return;
  const other = playerOf(second);
  const { task, untouched } = richest(samples);
  const script = busyScript(checked);
  const isFound = (...methods: string[]) =>
    findings.some(({ check }) => methods.some((method) => check.startsWith(method)));
  async function compare(method: string, what: string, one: unknown, ask: () => Promise<unknown>): Promise<void> {
    if (one === undefined || isFound(method)) return;
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
    if (isFound('step', 'reset')) return;
    const played = await attempt('step', () => checked.play(task, script));
    await compare('step', `task ${task}, played,`, played, () => other.play(task, script));
    const reference = untouched?.reference;
    if (!reference || isFound('evaluate') || isUserPlayed()) return;
    const check = `evaluate (${SECOND})`;
    const problem = await attempt(check, () => unsolved(other, task, reference));
    if (problem) add(check, problem, SOLVED_FIX);
  } finally {
    await second.close().catch(() => undefined);
  }
}
