/**
 * What tool schemas tell, of any target: which tools write, which arguments identify records, which identifiers can be looked up, and what an
 * observation shows; and one trajectory held against its reference: what was done, seen and said, and what was needed. A text that does not fit its
 * tool's output schema gives no record, rather than a wrong one; what the schemas leave open counts as possible, so that no agent is blamed for it; a
 * write that the environment answered with an error was attempted, not done.
 */
import {
  type Action,
  agentView,
  isSuccess,
  type JsonSchema,
  OutsideFailure,
  type ScoredRollout,
  type ToolSchema,
} from 'campaign/plugin';

/** Lower-case words and numbers; "i42", "35.5" and "user_id" are one word each. */
export const words = (text: string): string[] =>
  text.toLowerCase().match(/[\p{L}\p{N}]+(?:[.'_-][\p{L}\p{N}]+)*/gu) ?? [];

/** True if the words of `phrase` occur in `text`, next to each other and in this order. An empty phrase is nowhere. */
export function mentions(text: string, phrase: string): boolean {
  const needle = words(phrase);
  return needle.length > 0 && ` ${words(text).join(' ')} `.includes(` ${needle.join(' ')} `);
}

export const isNumber = (text: string): boolean => text.trim() !== '' && Number.isFinite(Number(text));

/** One spelling for an argument or a record's value, whether it came as a JSON number or as text. */
export const spell = (value: unknown): string => (typeof value === 'object' ? JSON.stringify(value) : String(value));

type Field = [name: string, schema: JsonSchema];
type Values = { field: Field; value: string }[];

const argumentFields = (tool: ToolSchema): Field[] => Object.entries(tool.parameters.properties ?? {});
/** The fields of one record of the observation, in rendered order; none if the tool has no output schema. */
const outputFields = ({ outputSchema }: ToolSchema): Field[] =>
  Object.entries((outputSchema?.items ?? outputSchema)?.properties ?? {});

const isNumeric = ({ type }: JsonSchema) => type === 'integer' || type === 'number';

/** Identifiers are codes: their pattern has digits, or, without a pattern, their name says it. */
const isIdentifier = ([name, schema]: Field) =>
  !isNumeric(schema) && (schema.pattern === undefined ? /(^|_)id$/.test(name) : /\[0-9|\\d/.test(schema.pattern));

/** What an identifier identifies: fields of one kind name the same records. */
const kindOf = ([name, { pattern }]: Field): string => pattern ?? name;

/** One record of an observation. */
export interface ObservedRecord {
  /** The tool that showed it. */
  tool: string;
  /** All values as text. */
  values: string[];
  identifiers: string[];
  /** The values that a user would name it by, e.g. "red lamp"; empty if the schemas name no such field. */
  description: string;
}

/** Two records of one tool that can be taken for each other: their descriptions share a word. */
export function confusable(a: ObservedRecord, b: ObservedRecord): boolean {
  if (a.tool !== b.tool || a.identifiers.join(' ') === b.identifiers.join(' ')) return false;
  const own = new Set(words(a.description));
  return words(b.description).some((word) => own.has(word));
}

/** A field describes its record if a tool takes it, or words of its vocabulary, as an argument. */
function descriptiveFields(tools: readonly ToolSchema[]): (field: Field) => boolean {
  const vocabularyOf = (schema: JsonSchema) => schema.pattern ?? (schema.enum && JSON.stringify(schema.enum));
  const taken = tools.flatMap(argumentFields);
  const names = new Set(taken.map(([name]) => name));
  const vocabularies = new Set(taken.map(([, schema]) => vocabularyOf(schema)));
  return ([name, schema]) => {
    const own = vocabularyOf(schema);
    const isTaken = own === undefined ? names.has(name) : vocabularies.has(own);
    return isTaken && !isNumeric(schema) && !isIdentifier([name, schema]);
  };
}

/** The text and number fields of every object in a JSON observation, at any depth; undefined if it is no JSON object or list. */
function jsonRecords(observation: string): Values[] | undefined {
  if (!/^\s*[{[]/.test(observation)) return undefined;
  try {
    return plainObjects(JSON.parse(observation));
  } catch {
    return undefined;
  }
}

function plainObjects(value: unknown): Values[] {
  if (typeof value !== 'object' || value === null) return [];
  const inner = Object.values(value).flatMap(plainObjects);
  if (Array.isArray(value)) return inner;
  const own = Object.entries(value)
    .filter(([, plain]) => typeof plain === 'string' || typeof plain === 'number')
    .map(([name, plain]) => ({ field: [name, { type: typeof plain }] satisfies Field, value: spell(plain) }));
  return own.length > 0 ? [own, ...inner] : inner;
}

/** Splits one rendered record into its fields; a value may have several words. Undefined if the text is no such record. */
function splitRecord(fields: readonly Field[], tokens: readonly string[]): Values | undefined {
  const [field, ...rest] = fields;
  if (field === undefined) return tokens.length === 0 ? [] : undefined;
  for (let length = 1; length <= tokens.length - rest.length; length++) {
    const value = tokens.slice(0, length).join(' ');
    const others = fits(field[1], value) ? splitRecord(rest, tokens.slice(length)) : undefined;
    if (others) return [{ field, value }, ...others];
  }
  return undefined;
}

function fits(schema: JsonSchema, text: string): boolean {
  if (isNumeric(schema)) return isNumber(text);
  if (schema.enum) return schema.enum.some((value) => String(value) === text);
  return schema.pattern === undefined || new RegExp(schema.pattern).test(text);
}

export type ToolKnowledge = ReturnType<typeof toolKnowledge>;

export function toolKnowledge(tools: readonly ToolSchema[]) {
  const describes = descriptiveFields(tools);
  const known = new Map(
    tools.map((tool) => {
      const identifiers = argumentFields(tool).filter(isIdentifier);
      return [tool.name, { tool, identifiers, isWrite: !tool.annotations?.readOnlyHint, fields: outputFields(tool) }];
    }),
  );
  const identifiers = [...known.values()].flatMap((one) => one.identifiers);
  const kinds = new Set(identifiers.map(kindOf));
  const patterns = new Map(
    identifiers.flatMap(([, { pattern }]) => (pattern === undefined ? [] : [[pattern, new RegExp(pattern)]])),
  );
  const lookUps = [...known.values()]
    .filter(({ isWrite }) => !isWrite)
    .map(({ tool, identifiers: taken, fields }) => ({
      needs: taken.filter(([name]) => tool.parameters.required?.includes(name)).map(kindOf),
      // Without an output schema a look-up may show anything.
      shows: tool.outputSchema ? fields.map(kindOf).filter((kind) => kinds.has(kind)) : [...kinds],
    }));

  /** True if `text` holds an identifier of this kind, or if the schemas don't tell what one looks like. */
  function holdsKind(text: string, kind: string): boolean {
    const pattern = patterns.get(kind);
    const tokens = text.split(/[\s,;:!?"'()]+/).map((token) => token.replace(/\.$/, ''));
    return pattern === undefined || tokens.some((token) => pattern.test(token));
  }

  return {
    holdsKind,
    isWrite: (tool: string): boolean => known.get(tool)?.isWrite ?? false,

    /** The arguments of a call that identify a record or an account, as they were given: one that was left out is none. */
    identifiersIn: (call: { name: string; arguments: Record<string, unknown> }): { kind: string; value: string }[] =>
      (known.get(call.name)?.identifiers ?? []).flatMap((field) => {
        const value = call.arguments[field[0]];
        return value === undefined || value === null ? [] : [{ kind: kindOf(field), value: spell(value) }];
      }),

    /** Kinds of identifiers that `text` holds or that look-ups give, starting from it. */
    reachableKinds(text: string): ReadonlySet<string> {
      const reached = new Set([...kinds].filter((kind) => holdsKind(text, kind)));
      for (let before = -1; before !== reached.size;) {
        before = reached.size;
        for (const { needs, shows } of lookUps)
          if (needs.every((kind) => reached.has(kind))) for (const kind of shows) reached.add(kind);
      }
      return reached;
    },

    /** Of JSON objects, or of the rendered form that output schemas describe (" ; " between records). */
    records(tool: string, observation: string): ObservedRecord[] {
      const fields = known.get(tool)?.fields ?? [];
      const rendered = () =>
        fields.length === 0
          ? []
          : observation.split(' ; ').flatMap((text) => {
              const values = splitRecord(fields, text.trim().split(/\s+/));
              return values ? [values] : [];
            });
      return (jsonRecords(observation) ?? rendered()).map((values) => {
        const valuesOf = (chosen: (field: Field) => boolean) =>
          values.filter(({ field }) => chosen(field)).map(({ value }) => value);
        return {
          tool,
          values: valuesOf(() => true),
          identifiers: valuesOf(isIdentifier),
          description: valuesOf(describes).join(' '),
        };
      });
    },
  };
}

export interface Call extends Action {
  failed: boolean;
  /** Everything that the user, the tools and the system said before the call, and the user's part of it. */
  before: string;
  userBefore: string;
}

export type Trajectory = ReturnType<typeof readTrajectory>;

/** @throws BadEnvironment if the rollout has no reference: the target says that it tells one. */
export function readTrajectory(o: {
  rollout: ScoredRollout;
  knowledge: ToolKnowledge;
  /** Statements known to refuse a request: from the policy's rules. */
  denials: readonly string[];
}) {
  const { rollout, knowledge, denials } = o;
  const { reference, key, stopReason } = rollout;
  if (!reference)
    throw new OutsideFailure(
      'BadEnvironment',
      `rollout ${key}: no reference; a target with hasReference must tell it in every evaluate()`,
    );
  const read = readMessages(rollout, knowledge);
  const writes = read.calls.filter(({ name }) => knowledge.isWrite(name));
  const done = writes.filter(({ failed }) => !failed);
  const onlyFailed = writes.filter((call) => call.failed && !done.some(({ name }) => name === call.name));
  // A call that did not parse is text: its name stands in front of a parenthesis.
  const unparsed = [...read.agentText.matchAll(/(\w+)\(/g)].filter(([, name = '']) => knowledge.isWrite(name));
  // Equal actions are paired one to one; the order in which they were done does not matter.
  const surplus = [...done];
  const missing = reference.actions.filter((action) => {
    const index = surplus.findIndex((call) => call.name === action.name && sameArguments(call, action));
    if (index >= 0) surplus.splice(index, 1);
    return index < 0;
  });
  return {
    ...read,
    knowledge,
    denials,
    passed: isSuccess(rollout),
    /** False if the environment or a limit cut it off. */
    endedRegularly: stopReason === 'user_stop' || stopReason === 'agent_stop',
    needed: reference.actions,
    /** Needed writes that were not done as needed, and writes that were done and not needed in this form. */
    missing,
    surplus,
    /** Writes that only failed: no write of the same tool was done. */
    attempted: unparsed.length + onlyFailed.length,
    /** What is to be told: denials, and facts, which are all the rest. */
    statements: reference.tell.filter((text) => denials.includes(text)),
    facts: reference.tell.filter((text) => !denials.includes(text)),
  };
}

/** Those that are not `ignored`. */
export const sameArguments = (a: Action, b: Action, ignored: readonly string[] = []): boolean =>
  Object.keys({ ...a.arguments, ...b.arguments })
    .filter((name) => !ignored.includes(name))
    .every((name) => spell(a.arguments[name]) === spell(b.arguments[name]));

function readMessages(rollout: ScoredRollout, knowledge: ToolKnowledge) {
  // What the user did with its own tools is nothing that the agent has seen.
  const messages = agentView(rollout.messages);
  const observations = new Map(
    messages.flatMap((message) => (message.role === 'tool' ? [[message.toolCallId, message.content]] : [])),
  );
  const calls: Call[] = [];
  const records: ObservedRecord[] = [];
  const said = { user: [] as string[], agent: [] as string[], toAgent: [] as string[] };
  for (const message of messages) {
    if (message.role !== 'assistant') {
      said.toAgent.push(message.content);
      if (message.role === 'user') said.user.push(message.content);
      continue;
    }
    said.agent.push(message.content);
    for (const { id, name, arguments: given } of message.toolCalls ?? []) {
      const observation = observations.get(id) ?? '';
      const failed = /^\W*error\b/i.test(observation);
      const [before, userBefore] = [said.toAgent.join('\n'), said.user.join('\n')];
      calls.push({ name, arguments: given, failed, before, userBefore });
      if (!failed) records.push(...knowledge.records(name, observation));
    }
  }
  return {
    calls,
    records,
    firstRequest: said.user[0] ?? '',
    userText: said.user.join('\n'),
    agentText: said.agent.join('\n'),
  };
}

/** The observed records that an action's identifiers name. */
export function recordsOf(action: Action, { records, knowledge }: Trajectory): ObservedRecord[] {
  const named = knowledge.identifiersIn(action).map(({ value }) => value);
  return records.filter(({ identifiers }) => identifiers.some((identifier) => named.includes(identifier)));
}

/** The records that the needed writes act on, and with them those that the user named by their description or an identifier. */
export const neededRecords = (trajectory: Trajectory): ObservedRecord[] =>
  trajectory.needed.flatMap((action) => recordsOf(action, trajectory));
export const wantedRecords = (trajectory: Trajectory): ObservedRecord[] => [
  ...neededRecords(trajectory),
  ...trajectory.records.filter(({ description, identifiers }) =>
    [description, ...identifiers].some((name) => mentions(trajectory.userText, name)),
  ),
];
