/**
 * Calls: several in one message, calls that the agent gets wrong, calls that are right, and their observations against the tool's `outputSchema`.
 */
import { type ResetResult, type StepResult, stepResultSchema } from '../../domain/environment';
import type { AssistantMessage, JsonSchema, ToolSchema } from '../../domain/messages';
import { argumentsIn, jsonOf } from '../../sandbox/copied-values';
import { hasShape, recordShape } from '../../sandbox/vocabulary';
import { quoted } from '../connection';
import { valueProblem } from '../json-schema';
import { ANSWERS_FIX, answersProblem } from '../process-episode';
import { firstIssue } from '../protocol';
import {
  answerTo,
  callsOf,
  type Checked,
  isError,
  isRead,
  observed,
  richest,
  type Sample,
  say,
  validCall,
} from './probe';

/** Tools whose calls are tried, writes first. */
const TOOLS = 8;
const SEVERAL = 3;
const NO_TOOL = 'no_such_tool';

/** The answer to a message in an episode of its own, if it is one. */
async function answered(checked: Checked, what: string, message: AssistantMessage): Promise<StepResult | undefined> {
  const { environment, samples, add, attempt } = checked;
  const check = `step: ${what}`;
  const { task } = richest(samples);
  const result = await attempt(check, () => answerTo({ environment, task, message }));
  if (!result) return undefined;
  const parsed = stepResultSchema.safeParse(result);
  if (!parsed.success) return void add(check, firstIssue(parsed.error), 'return {messages, done}');
  const { messages, done } = result;
  const calls = message.toolCalls;
  const problem = answersProblem({ calls, messages: agents(messages), done, requestor: 'agent' });
  if (problem !== undefined) return void add(check, problem, ANSWERS_FIX);
  if (!calls && !done && messages.length === 0)
    add(check, 'messages is empty and done is false', 'let the user answer, or end the episode');
  return result;
}

/** Without what a simulated user's own calls were answered. */
const agents = (messages: StepResult['messages']) =>
  messages.filter((message) => !(message.role === 'tool' && message.requestor === 'user'));

function callable({ description, samples }: Checked) {
  const actions = richest(samples).untouched?.reference?.actions;
  const { tools } = description;
  return [...tools.filter((tool) => !isRead(tool)), ...tools.filter(isRead)].slice(0, TOOLS).flatMap((tool) => {
    const call = validCall(tool, actions);
    return call ? [{ tool, call }] : [];
  });
}

/** All are answered, in order, under their ids. */
export async function checkSeveralCalls(checked: Checked): Promise<void> {
  const calls = callable(checked)
    .map(({ call }) => call)
    .reverse();
  if (calls.length === 0) return;
  const message = callsOf(...Array.from({ length: SEVERAL }, (_, n) => calls[n % calls.length]!));
  await answered(checked, `${SEVERAL} calls in one message`, message);
}

/** The agent's mistakes must be answered, not be errors. Every policy makes them now and then. */
export async function checkBadCalls(checked: Checked): Promise<void> {
  const [tool] = checked.description.tools;
  const name = tool?.name ?? 'tool';
  const wrong = Object.fromEntries(Object.keys(tool?.parameters.properties ?? {}).map((field) => [field, ['wrong']]));
  const mistakes: [what: string, message: AssistantMessage][] = [
    ['a call of an unknown tool', callsOf({ name: NO_TOOL, arguments: {} })],
    ['a call without arguments', callsOf({ name, arguments: {} })],
    ['arguments of a wrong type', callsOf({ name, arguments: { ...wrong, unexpected: { nested: [null] } } })],
    ['neither text nor calls', say('')],
  ];
  for (const [what, message] of mistakes) await answered(checked, what, message);
}

/** A tool that is described is there; what it says of wrong arguments names the field. */
export async function checkValidCalls(checked: Checked): Promise<void> {
  const { add, note } = checked;
  const unknown = await answered(checked, 'a call of an unknown tool', callsOf({ name: NO_TOOL, arguments: {} }));
  const refusal = unknown && observed(unknown).replaceAll(NO_TOOL, '');
  const failed: string[] = [];
  const unnamed: string[] = [];
  let written = false;
  for (const [n, { tool, call }] of callable(checked).entries()) {
    if (n > 1 && !checked.hasTime()) break;
    const result = await answered(checked, `a valid call of ${tool.name}`, callsOf(call));
    if (!result) continue;
    const text = observed(result);
    if (!isRead(tool)) {
      if (isError(text))
        failed.push(`${tool.name}(${quoted(JSON.stringify(call.arguments), 80)}): "${quoted(text, 80)}"`);
      else written = true;
    }
    if (refusal && isError(refusal) && text.replaceAll(tool.name, '') === refusal) {
      add(
        `step: a valid call of ${tool.name}`,
        `messages.0.content is "${quoted(text, 80)}", as for a tool that does not exist`,
        `run ${tool.name}, which describe lists; say of a tool that you don't have that it is unknown`,
      );
    } else unnamed.push(...(await errorsWithoutField(checked, tool, call.arguments)));
  }
  if (unnamed.length > 0)
    note(
      'step',
      `messages.0.content does not name the wrong argument of ${unnamed.length} calls: ${unnamed.slice(0, 2).join('; ')}`,
      'answer with the name of the argument and what it must be ("error : amount must be a whole number")',
    );
  if (!written && failed.length > 0)
    note(
      'step',
      `no call of a tool that writes was seen to succeed: ${failed.slice(0, 2).join('; ')}`,
      'tell reference actions, or describe the arguments by enum, pattern or range, so that it can be checked',
    );
}

/** Calls with one argument missing, or of a wrong type, whose answers do not name it: an agent can't learn to mend them. */
async function errorsWithoutField(
  checked: Checked,
  tool: ToolSchema,
  right: Record<string, unknown>,
): Promise<string[]> {
  const [field] = tool.parameters.required ?? [];
  if (field === undefined) return [];
  const without = Object.fromEntries(Object.entries(right).filter(([name]) => name !== field));
  const cases: [what: string, values: Record<string, unknown>][] = [
    [`${tool.name} without "${field}"`, without],
    [`${tool.name} with "${field}" of a wrong type`, { ...right, [field]: { wrong: true } }],
  ];
  const unnamed: string[] = [];
  for (const [what, values] of cases) {
    const result = await answered(checked, what, callsOf({ name: tool.name, arguments: values }));
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

export async function checkObservations(checked: Checked): Promise<void> {
  for (const tool of checked.description.tools)
    if (tool.outputSchema) await checkTool(checked, tool, tool.outputSchema);
}

async function checkTool(checked: Checked, tool: ToolSchema, schema: JsonSchema): Promise<void> {
  const { environment, samples, attempt, add, note, hasTime } = checked;
  const check = `step: a valid call of ${tool.name}`;
  const compared: { text: string; mismatch: Mismatch | undefined }[] = [];
  for (const [n, sample] of samples.entries()) {
    if (n > 1 && !hasTime()) break;
    const { task, untouched } = sample;
    const asked = { name: 'asked for', arguments: argumentsIn(tool, textsOf(sample)) };
    const call = validCall(tool, [...(untouched?.reference?.actions ?? []), asked]);
    if (!call) break;
    const result = await attempt(check, () => answerTo({ environment, task, message: callsOf(call) }));
    const text = result && observed(result);
    if (text !== undefined && !isError(text)) compared.push({ text, mismatch: mismatchOf(schema, text) });
  }
  const someFit = compared.some(({ mismatch }) => !mismatch);
  const wrong = compared.find(({ mismatch }) => mismatch && !(someFit && mismatch.isWords));
  if (wrong)
    add(
      check,
      `messages.0.content is "${quoted(wrong.text, 120)}", which is not what outputSchema says: ${wrong.mismatch!.problem}`,
      `make them agree: JSON, or a record's values with spaces between them and " ; " between records; begin with "error" what is no record`,
    );
  else if (compared.length === 0)
    note(
      'step',
      `no observation of ${tool.name} was seen to compare with its outputSchema: each call was answered by an error`,
      'tell reference actions, or describe the arguments by enum, pattern or range, so that it can be checked',
    );
}

/** What the user says first: it names accounts and items that there are. */
const textsOf = ({ start }: Sample): string[] =>
  (start as ResetResult | undefined)?.messages.flatMap(({ role, content }) => (role === 'user' ? [content] : [])) ?? [];

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
  if (hasShape(recordShape({ properties }), text) !== false) return undefined;
  const records = text.split(' ; ');
  const begins = (record: string, fields: [string, JsonSchema][]) =>
    [fields, [...fields, REST]].some((some) => hasShape(shapeOf(some), record) !== false);
  const shapeOf = (fields: [string, JsonSchema][]) => recordShape({ properties: Object.fromEntries(fields) });
  const fields = Object.entries(properties);
  for (const [n, record] of records.entries()) {
    if (hasShape(shapeOf(fields), record) !== false) continue;
    const wrong = fields.findIndex((_, at) => !begins(record, fields.slice(0, at + 1)));
    const [name, schema] = fields[wrong] ?? [];
    const what =
      name === undefined
        ? 'there is more after the last field'
        : `${name}: no value of ${quoted(JSON.stringify(schema), 160)} where it should be`;
    return { problem: `record ${n + 1}: ${what}`, isWords: wrong === 0 };
  }
  return undefined;
}

/** Whatever comes after the fields that are compared. */
const REST: [string, JsonSchema] = ['', {}];
