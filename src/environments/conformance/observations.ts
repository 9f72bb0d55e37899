/** Observations of valid calls against the `outputSchema` of their tool. Invariant: what begins as an error is no record, and is not compared. */
import type { ResetResult } from '../../domain/environment';
import type { JsonSchema, ToolSchema } from '../../domain/messages';
import { argumentsIn, jsonOf } from '../../sandbox/copied-values';
import { hasShape, recordShape } from '../../sandbox/records';
import { valueProblem } from '../json-schema';
import { quoted } from '../trouble';
import type { Checked, Sample } from './checked';
import { answerTo, callsOf, isError, observed } from './playing';
import { validCall } from './valid-calls';

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
export function mismatchOf(schema: JsonSchema, text: string): Mismatch | undefined {
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
