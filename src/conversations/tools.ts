/** The tools: those that the files define, else those that were called, with the arguments that were given. */
import type { JsonSchema, ToolCall, ToolSchema } from '../domain/messages';
import type { Conversation } from './conversation';

export function toolsOf(conversations: readonly Conversation[]): { tools: ToolSchema[]; notes: string[] } {
  const calls = conversations.flatMap(({ messages }) =>
    messages.flatMap((message) => (message.role === 'assistant' ? (message.toolCalls ?? []) : [])),
  );
  const defined = definedTools(conversations);
  if (defined.tools.length > 0) return defined;
  const names = [...new Set(calls.map(({ name }) => name))].sort();
  const tools = names.map((name) => inferred({ name, calls: calls.filter((call) => call.name === name) }));
  const notes = ['no tool definitions ("tools"): tools and their arguments are those that were called'];
  return { tools, notes: tools.length > 0 ? notes : [] };
}

/** By name, in the order of their names; the first definition of several counts. */
function definedTools(conversations: readonly Conversation[]): { tools: ToolSchema[]; notes: string[] } {
  const byName = new Map<string, ToolSchema>();
  const several = new Set<string>();
  for (const { tools = [] } of conversations)
    for (const tool of tools) {
      const known = byName.get(tool.name);
      if (!known) byName.set(tool.name, tool);
      else if (JSON.stringify(known) !== JSON.stringify(tool)) several.add(tool.name);
    }
  const names = [...byName.keys()].sort();
  return {
    tools: names.flatMap((name) => byName.get(name) ?? []),
    notes:
      several.size > 0
        ? [`tools that are defined in several ways, of which the first counts: ${[...several].join(', ')}`]
        : [],
  };
}

function inferred({ name, calls }: { name: string; calls: readonly ToolCall[] }): ToolSchema {
  const given = [...new Set(calls.flatMap((call) => Object.keys(call.arguments)))].sort();
  const properties = Object.fromEntries(
    given.map((argument): [string, JsonSchema] => {
      const types = new Set(
        calls.flatMap((call) => (argument in call.arguments ? [typeOf(call.arguments[argument])] : [])),
      );
      const [type] = types;
      return [argument, types.size === 1 && type !== undefined ? { type } : {}];
    }),
  );
  const required = given.filter((argument) => calls.every((call) => argument in call.arguments));
  return {
    name,
    description: '',
    parameters: { type: 'object', properties, ...(required.length > 0 && { required }) },
  };
}

function typeOf(value: unknown): string {
  if (Array.isArray(value)) return 'array';
  if (value === null) return 'null';
  return typeof value;
}
