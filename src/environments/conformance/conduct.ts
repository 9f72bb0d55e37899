/**
 * What an environment does: calls that are right, wrong or several at once, observations, and episodes that share
 * nothing.
 */
import {
  type Environment,
  type Episode,
  splitSchema,
  type StepResult,
  stepResultSchema,
} from '../../domain/environment';
import type { AssistantMessage, JsonSchema, ToolSchema } from '../../domain/messages';
import { argumentsIn, jsonOf } from '../../sandbox/copied-values';
import { hasShape, recordShape } from '../../sandbox/vocabulary';
import { quoted } from '../connection';
import { valueProblem } from '../json-schema';
import { ANSWERS_FIX, answersProblem } from '../process-episode';
import { firstIssue } from '../protocol';
import { SOLVED_FIX, unsolved } from './contract';
import {
  answerTo,
  busyScript,
  callsOf,
  type Checked,
  firstDifference,
  isError,
  isRead,
  observed,
  play,
  playIn,
  richest,
  type Sample,
  say,
  SEED,
  startOf,
  timely,
  untouchedOf,
  validCall,
} from './probe';

/** Tools whose calls are tried, writes first. */
const TOOLS = 8;
const SEVERAL = 3;
const UNKNOWN_TOOL = callsOf({ name: 'no_such_tool', arguments: {} });

/** The answer to a message in an episode of its own, if it is one. */
async function answered(checked: Checked, what: string, message: AssistantMessage): Promise<StepResult | undefined> {
  const { environment, samples, add, attempt } = checked;
  const check = `step: ${what}`;
  const result = await attempt(check, () => answerTo(environment, richest(samples).task, message));
  if (!result) return undefined;
  const parsed = stepResultSchema.safeParse(result);
  if (!parsed.success) return void add(check, firstIssue(parsed.error), 'return {messages, done}');
  const { messages, done } = result;
  const calls = message.toolCalls;
  // Without what a simulated user's own calls were answered.
  const toAgent = messages.filter((one) => !(one.role === 'tool' && one.requestor === 'user'));
  const problem = answersProblem({ calls, messages: toAgent, done, requestor: 'agent' });
  if (problem !== undefined) return void add(check, problem, ANSWERS_FIX);
  if (!calls && !done && messages.length === 0)
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

/** All are answered, in order, under their ids. */
export async function checkSeveralCalls(checked: Checked): Promise<void> {
  const calls = callable(checked).reverse();
  if (calls.length === 0) return;
  const several = Array.from({ length: SEVERAL }, (_, n) => calls[n % calls.length]!.call);
  await answered(checked, `${SEVERAL} calls in one message`, callsOf(...several));
}

/** The agent's mistakes must be answered, not be errors. Every policy makes them now and then. */
export async function checkBadCalls(checked: Checked): Promise<void> {
  const [tool] = checked.description.tools;
  const name = tool?.name ?? 'tool';
  const wrong = Object.fromEntries(Object.keys(tool?.parameters.properties ?? {}).map((field) => [field, ['wrong']]));
  await answered(checked, 'a call of an unknown tool', UNKNOWN_TOOL);
  await answered(checked, 'a call without arguments', callsOf({ name, arguments: {} }));
  const values = { ...wrong, unexpected: { nested: [null] } };
  await answered(checked, 'arguments of a wrong type', callsOf({ name, arguments: values }));
  await answered(checked, 'neither text nor calls', say(''));
}

const SAY_VALUES =
  'tell reference actions, or describe the arguments by enum, pattern or range, so that it can be checked';

/** A tool that is described is there; what it says of wrong arguments names the field. */
export async function checkValidCalls(checked: Checked): Promise<void> {
  const { add, note } = checked;
  const unknown = await answered(checked, 'a call of an unknown tool', UNKNOWN_TOOL);
  const refusal = unknown && observed(unknown).replaceAll('no_such_tool', '');
  const failed: string[] = [];
  const unnamed: string[] = [];
  let written = false;
  for (const [n, { tool, call }] of callable(checked).entries()) {
    if (n > 1 && !checked.hasTime()) break;
    const check = `a valid call of ${tool.name}`;
    const result = await answered(checked, check, callsOf(call));
    if (!result) continue;
    const text = observed(result);
    if (!isRead(tool) && !isError(text)) written = true;
    else if (!isRead(tool))
      failed.push(`${tool.name}(${quoted(JSON.stringify(call.arguments), 80)}): "${quoted(text, 80)}"`);
    if (refusal && isError(refusal) && text.replaceAll(tool.name, '') === refusal) {
      const problem = `messages.0.content is "${quoted(text, 80)}", as for a tool that does not exist`;
      const fix = `run ${tool.name}, which describe lists; say of a tool that you don't have that it is unknown`;
      add(`step: ${check}`, problem, fix);
    } else unnamed.push(...(await errorsWithoutField(checked, tool, call.arguments)));
  }
  if (unnamed.length > 0)
    note(
      'step',
      `messages.0.content does not name the wrong argument of ${unnamed.length} calls: ${unnamed.slice(0, 2).join('; ')}`,
      'answer with the name of the argument and what it must be ("error : amount must be a whole number")',
    );
  const problem = `no call of a tool that writes was seen to succeed: ${failed.slice(0, 2).join('; ')}`;
  if (!written && failed.length > 0) note('step', problem, SAY_VALUES);
}

/** Calls with one argument missing, or of a wrong type, whose answers do not name it: an agent can't learn to mend them. */
async function errorsWithoutField(
  checked: Checked,
  { name, parameters }: ToolSchema,
  right: Record<string, unknown>,
): Promise<string[]> {
  const [field] = parameters.required ?? [];
  if (field === undefined) return [];
  const without = Object.fromEntries(Object.entries(right).filter(([key]) => key !== field));
  const cases = { without, with: { ...right, [field]: { wrong: true } } };
  const unnamed: string[] = [];
  for (const [how, values] of Object.entries(cases)) {
    const what = `${name} ${how} "${field}"${how === 'with' ? ' of a wrong type' : ''}`;
    const result = await answered(checked, what, callsOf({ name, arguments: values }));
    const text = result && observed(result);
    if (text !== undefined && !text.includes(field)) unnamed.push(`${what}: "${quoted(text, 80)}"`);
  }
  return unnamed;
}

interface Mismatch {
  /** What does not fit, in words. */
  problem: string;
  /** A text that does not even begin as a record: it may say that there is none. */
  isWords?: boolean;
}

/** Observations are what `outputSchema` says. */
export async function checkObservations(checked: Checked): Promise<void> {
  const { environment, attempt, add, note } = checked;
  for (const tool of checked.description.tools) {
    if (!tool.outputSchema) continue;
    const check = `step: a valid call of ${tool.name}`;
    const compared: { text: string; mismatch: Mismatch | undefined }[] = [];
    for (const sample of timely(checked)) {
      const named = { name: 'named by the user', arguments: argumentsIn(tool, userTexts(sample)) };
      const call = validCall(tool, [...(sample.untouched?.reference?.actions ?? []), named]);
      if (!call) break;
      const result = await attempt(check, () => answerTo(environment, sample.task, callsOf(call)));
      const text = result && observed(result);
      if (text !== undefined && !isError(text)) compared.push({ text, mismatch: mismatchOf(tool.outputSchema, text) });
    }
    const someFit = compared.some(({ mismatch }) => !mismatch);
    const wrong = compared.find(({ mismatch }) => mismatch && !(someFit && mismatch.isWords));
    if (wrong)
      add(
        check,
        `messages.0.content is "${quoted(wrong.text, 120)}", which is not what outputSchema says: ${wrong.mismatch!.problem}`,
        `make them agree: JSON, or a record's values with spaces between them and " ; " between records; begin with "error" what is no record`,
      );
    const problem = `no observation of ${tool.name} was seen to compare with its outputSchema: each call was answered by an error`;
    if (compared.length === 0) note('step', problem, SAY_VALUES);
  }
}

/** What the user says first: it names accounts and items that there are. */
const userTexts = ({ start }: Sample): string[] =>
  start?.messages.flatMap(({ role, content }) => (role === 'user' ? [content] : [])) ?? [];

/** Undefined where the observation is a record of the schema, or several: JSON, or values with spaces between them. */
function mismatchOf(schema: JsonSchema, text: string): Mismatch | undefined {
  const json = jsonOf(text);
  if (!json && schema.properties) return textMismatch(schema.properties, text);
  const records = Array.isArray(json) && schema.type !== 'array' ? (json as unknown[]) : [json ?? scalarOf(text)];
  for (const [n, record] of records.entries()) {
    const problem = valueProblem(schema, record);
    if (problem !== undefined) return { problem: records.length > 1 ? `record ${n + 1}: ${problem}` : problem };
  }
  return undefined;
}

/** `42`, `true`; any other text is one. */
function scalarOf(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

/** The first field of the first record whose value is not there. */
function textMismatch(properties: Record<string, JsonSchema>, text: string): Mismatch | undefined {
  const isA = (fields: [string, JsonSchema][], record: string) =>
    hasShape(recordShape({ properties: Object.fromEntries(fields) }), record) !== false;
  const fields = Object.entries(properties);
  if (isA(fields, text)) return undefined;
  for (const [n, record] of text.split(' ; ').entries()) {
    if (isA(fields, record)) continue;
    const begins = (some: [string, JsonSchema][]) => isA(some, record) || isA([...some, ANYTHING], record);
    const wrong = fields.findIndex((_, at) => !begins(fields.slice(0, at + 1)));
    const [name, schema] = fields[wrong] ?? [];
    const expected = `${name}: no value of ${quoted(JSON.stringify(schema) ?? '', 160)} where it should be`;
    const problem = name === undefined ? 'there is more after the last field' : expected;
    return { problem: `record ${n + 1}: ${problem}`, isWords: wrong === 0 };
  }
  return undefined;
}

/** Whatever comes after the fields that are compared. */
const ANYTHING: [string, JsonSchema] = ['', {}];

/** As many as show what is shared; fewer of a slow environment. */
const [SIDE_BY_SIDE, OF_A_SLOW_ONE] = [8, 3];
const STATE_FIX = 'keep all state in the episode, copied afresh at reset, and draw nothing from a shared source';

/** Episodes share nothing: in turn, in each other's midst, side by side. */
export async function checkIndependence(checked: Checked): Promise<void> {
  const { environment, samples, add, attempt, hasTime } = checked;
  const { task, untouched: before } = richest(samples);
  const script = busyScript(checked);
  const isSame = (what: string, first: unknown, second: unknown): boolean => {
    const difference = firstDifference(first, second);
    if (difference !== undefined) add('step', `task ${task}, ${what}: ${difference}`, STATE_FIX);
    return difference === undefined;
  };

  await attempt('reset', () => beginAmongOpen(environment, task));
  await attempt('step (episodes in turn)', async () => {
    const first = await play(environment, task, script);
    const second = await play(environment, task, script);
    if (!isSame('played twice in turn, is answered differently', first, second)) return;
    const untouched = await untouchedOf(environment, task);
    if (before && !isSame('left alone after another episode has written', before, untouched)) return;
    const writing = await environment.reset({ id: task, seed: SEED });
    const waiting = await environment.reset({ id: task, seed: SEED });
    const both = [await playIn(writing, script), await playIn(waiting, script)];
    await Promise.all([writing.close(), waiting.close()]);
    if (!isSame('played while another episode is open', first, both[0])) return;
    if (!isSame('open while another episode wrote', first, both[1])) return;
    const times = hasTime() ? SIDE_BY_SIDE : OF_A_SLOW_ONE;
    const together = await Promise.all(Array.from({ length: times }, () => play(environment, task, script)));
    together.every((one) => isSame(`played ${times} times side by side`, first, one));
  });
}

/** An id that counts the open episodes is given again once one before the last is closed. Whoever speaks to its process refuses it. */
async function beginAmongOpen(environment: Environment, task: string): Promise<void> {
  const open: Episode[] = [];
  const begin = async () => void open.push(await environment.reset({ id: task, seed: SEED }));
  try {
    await begin();
    await begin();
    await open.shift()!.close();
    await begin();
  } finally {
    for (const episode of open) await episode.close().catch(() => undefined);
  }
}

const PROCESS_FIX =
  'derive it from task and seed: no process id, no clock, no order of a set or a hash that changes with the process';

/** A second process says the same. */
export async function checkSecondProcess(checked: Checked, again: () => Promise<Environment>): Promise<void> {
  const other = await checked.attempt('second process', again);
  if (!other) return;
  try {
    await compareWith(other, checked);
  } finally {
    await other.close().catch(() => undefined);
  }
}

async function compareWith(other: Environment, checked: Checked): Promise<void> {
  const { environment, description, lists, samples, findings, add, attempt } = checked;
  const isSame = (check: string, what: string, one: unknown, two: unknown): boolean => {
    const difference = firstDifference(one, two);
    if (difference !== undefined) add(check, `${what} differs in a second process: ${difference}`, PROCESS_FIX);
    return difference === undefined;
  };
  // What is wrong in one process already is not said again of two.
  const isFound = (method: string) => findings.some(({ check }) => check.startsWith(method));
  const name = 'second process';
  const described = await attempt(`describe (${name})`, () => other.describe());
  if (!described) return;
  isSame('describe', 'the description', description, described);
  for (const split of splitSchema.options) {
    const tasks = await attempt(`tasks (${name})`, () => other.tasks(split));
    if (tasks) isSame('tasks', `tasks(${split})`, lists[split], tasks);
  }
  for (const { task, start, untouched } of timely(checked)) {
    const begun = await attempt(`reset (${name})`, () => startOf(other, task));
    if (!begun || (start && !isSame('reset', `the start of task ${task}`, start, begun))) break;
    const evaluation = untouched && (await attempt(`evaluate (${name})`, () => untouchedOf(other, task)));
    if (evaluation && !isSame('evaluate', `the evaluation of task ${task}, left alone,`, untouched, evaluation)) break;
  }
  if (isFound('step') || isFound('reset')) return;
  const { task, untouched } = richest(samples);
  const script = busyScript(checked);
  const both = await attempt(`step (${name})`, async () => [
    await play(environment, task, script),
    await play(other, task, script),
  ]);
  if (both) isSame('step', `task ${task}, played,`, both[0], both[1]);
  const reference = untouched?.reference;
  if (!reference || isFound('evaluate') || checked.isUserPlayed()) return;
  const problem = await attempt(`evaluate (${name})`, () => unsolved(other, task, reference));
  if (problem) add(`evaluate (${name})`, problem, SOLVED_FIX);
}
