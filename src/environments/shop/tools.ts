/**
 * What the agent is shown. Every value of an argument or observation is described by the schemas, every word is one
 * token of the base model, and a write's `description` is the request with its arguments in braces: generators need no
 * more.
 */
import type { JsonSchema, ToolSchema } from '../../domain/messages';
import type { PolicyRule } from '../policy-rules';

export const COLORS = ['red', 'blue', 'green', 'black', 'white', 'grey', 'pink', 'brown'] as const;
export const KINDS = [
  'lamp',
  'chair',
  'desk',
  'sofa',
  'rug',
  'shelf',
  'mirror',
  'clock',
  'vase',
  'stool',
  'bed',
  'table',
] as const;
export const CITIES = ['paris', 'rome', 'oslo', 'lima', 'cairo', 'delhi', 'tokyo', 'quito'] as const;
export const PRICES = Array.from({ length: 18 }, (_, i) => 10 + 5 * i);

export const POLICY = [
  'look up the account first .',
  'ask for it if missing .',
  'cancel and rush only pending items .',
  'return and exchange only delivered items .',
  'else say not allowed .',
  'refund the price , minus 5 if opened .',
  'do all that is asked .',
  'tell how much if asked .',
].join(' ');

export const TEXTS = {
  account: (user: string) => `my account is ${user} .`,
  askAccount: 'what is your account ?',
  opened: 'it is opened',
  howMuch: (item: string) => `how much for the ${item} ?`,
  done: 'done .',
  denial: 'not allowed',
  amount: (item: string, amount: number) => `the ${item} is ${amount} .`,
  sorry: 'sorry .',
  bye: 'thanks . bye .',
  ok: 'ok',
  noItems: 'no items',
  unknownTool: 'error : unknown tool',
  badArguments: 'error : bad arguments',
  unknownAccount: 'error : unknown account',
  unknownItem: 'error : unknown item',
} as const;

const item: JsonSchema = { type: 'string', pattern: `^(${COLORS.join('|')}) (${KINDS.join('|')})$` };
const id: JsonSchema = { type: 'string', pattern: '^i[0-9]{2}$' };
const user: JsonSchema = { type: 'string', pattern: '^u[0-9]{2}$' };
const price: JsonSchema = { type: 'integer', minimum: 10, maximum: 95, multipleOf: 5 };

function tool(
  name: string,
  description: string,
  properties: Record<string, JsonSchema>,
  output?: Record<string, JsonSchema>,
): ToolSchema {
  return {
    name,
    description,
    parameters: { type: 'object', properties, required: Object.keys(properties) },
    annotations: { readOnlyHint: output !== undefined },
    ...(output ? { outputSchema: { type: 'object', properties: output, required: Object.keys(output) } } : {}),
  };
}

export const TOOLS: ToolSchema[] = [
  tool(
    'get_account',
    'the items of account {user}',
    { user },
    { item, id, status: { type: 'string', enum: ['pending', 'delivered'] }, price },
  ),
  tool('list_stock', 'the {item} in stock', { item }, { item, id, price }),
  tool('cancel_item', 'cancel the {item}', { item, id }),
  tool('rush_item', 'rush the {item}', { item, id }),
  tool('return_item', 'return the {item}', {
    item,
    id,
    refund: { type: 'integer', minimum: 5, maximum: 95, multipleOf: 5 },
  }),
  tool('exchange_item', 'exchange the {item} for the {new_item}', { item, id, new_item: item, new_id: id }),
  tool('change_address', 'change the address to {city}', { user, city: { type: 'string', enum: [...CITIES] } }),
];

const precondition = (name: string, value: string): PolicyRule => ({
  kind: 'precondition',
  tool: name,
  field: 'status',
  value,
  denial: TEXTS.denial,
});

export const RULES: PolicyRule[] = [
  precondition('cancel_item', 'pending'),
  precondition('rush_item', 'pending'),
  precondition('return_item', 'delivered'),
  precondition('exchange_item', 'delivered'),
  { kind: 'value', tool: 'return_item', argument: 'refund', field: 'price', marker: TEXTS.opened, offset: -5 },
  { kind: 'tell', question: TEXTS.howMuch('{item}'), field: 'price' },
  { kind: 'ask', argument: 'user', question: TEXTS.askAccount, answer: TEXTS.account('%') },
];

export function matches(schema: JsonSchema, value: unknown): boolean {
  if (schema.enum && !schema.enum.includes(value as string)) return false;
  if (schema.type === 'integer') {
    return (
      Number.isInteger(value) &&
      (value as number) >= (schema.minimum ?? -Infinity) &&
      (value as number) <= (schema.maximum ?? Infinity) &&
      (value as number) % (schema.multipleOf ?? 1) === 0
    );
  }
  return typeof value === 'string' && (schema.pattern === undefined || new RegExp(schema.pattern).test(value));
}
