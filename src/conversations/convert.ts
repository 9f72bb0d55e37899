/** Forms of files that are refused, each with the command that converts it. */

interface Form {
  name: string;
  isOne: (line: Record<string, unknown>) => boolean;
  /** For jq; FILE is the file. */
  command: string;
  /** Said after the command. */
  then?: string;
}

const has = (line: object, ...fields: string[]): boolean => fields.every((field) => Object.hasOwn(line, field));

const ITEMS = ['function_call', 'function_call_output', 'reasoning', 'message'];
const isItem = (item: unknown): boolean => {
  const { type, content } = (item ?? {}) as { type?: unknown; content?: unknown };
  return ITEMS.includes(type as string) && (type !== 'message' || Array.isArray(content));
};

const FORMS: readonly Form[] = [
  {
    name: 'a result of verifiers',
    isOne: (line) => has(line, 'prompt', 'completion') && !has(line, 'messages'),
    command: `jq -c '{task: "\\(.example_id)", messages: (.prompt + .completion), reward}' FILE`,
  },
  {
    name: 'a list of items of the Responses API',
    isOne: (line) =>
      [line['messages'], line['input'], line['output']].some((list) => Array.isArray(list) && list.some(isItem)),
    command:
      `jq -c '.messages = ([.messages, .input, .output] | map(arrays) | add | map(` +
      `if .type == "function_call" then {role: "assistant", tool_calls: [{id: .call_id, function: {name, arguments}}]} ` +
      `elif .type == "function_call_output" then {role: "tool", tool_call_id: .call_id, content: .output} ` +
      `elif .type == "reasoning" then empty else . end)) | del(.input, .output)' FILE`,
  },
  {
    name: 'a line of a Claude Code session, which is one conversation',
    isOne: (line) =>
      has(line, 'type') &&
      (has(line, 'sessionId') || has(line, 'message') || line['type'] === 'summary') &&
      !has(line, 'messages'),
    command: `jq -cs '{messages: map(select(.type == "user" or .type == "assistant") | .message), passed: false}' FILE`,
    then: 'set passed',
  },
  {
    name: 'a file of Who&When',
    isOne: (line) => has(line, 'history', 'question'),
    command:
      `jq -c '{id: .question_ID, messages: ([{role: "user", content: .question}] + ` +
      `[.history[] | {role: "assistant", name: (.name // .role), content}]), passed: (.is_correct // .is_corrected // false)}' FILE`,
  },
];

/** Says what a line or file is and how it is converted; undefined for one of no known form. */
export function conversionOf(value: unknown): string | undefined {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return undefined;
  const form = FORMS.find(({ isOne }) => isOne(value as Record<string, unknown>));
  return form && `is ${form.name}; convert it with ${form.command}${form.then ? `, and ${form.then}` : ''}`;
}
