/**
 * What the agent is shown. Every value of an argument or observation is described by the schemas, every word is one
 * token of the base model, and a write's `description` is the request with its arguments in braces: generators need no
 * more.
 */
import type { JsonSchema, ToolSchema } from '../../domain/messages';
import type { PolicyRule } from '../policy-rules';

export const COLORS = 'red blue green black white grey pink brown'.split(' ');
export const KINDS = 'lamp chair desk sofa rug shelf mirror clock vase stool bed table'.split(' ');
export const CITIES = 'paris rome oslo lima cairo delhi tokyo quito'.split(' ');
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
};

const item: JsonSchema = { type: 'string', pattern: `^(${COLORS.join('|')}) (${KINDS.join('|')})$` };
const id: JsonSchema = { type: 'string', pattern: '^i[0-9]{2}$' };
const user: JsonSchema = { type: 'string', pattern: '^u[0-9]{2}$' };
const price: JsonSchema = { type: 'integer', minimum: 10, maximum: 95, multipleOf: 5 };
const refund: JsonSchema = { type: 'integer', minimum: 5, maximum: 95, multipleOf: 5 };
const status: JsonSchema = { type: 'string', enum: ['pending', 'delivered'] };
const city: JsonSchema = { type: 'string', enum: CITIES };

type Fields = Record<string, JsonSchema>;
const record = (properties: Fields) => ({ type: 'object', properties, required: Object.keys(properties) });

const write = (name: string, description: string, properties: Fields): ToolSchema => ({
  name,
  description,
  parameters: record(properties),
  annotations: { readOnlyHint: false },
});
const read = (name: string, description: string, properties: Fields, output: Fields): ToolSchema => ({
  ...write(name, description, properties),
  annotations: { readOnlyHint: true },
  outputSchema: record(output),
});

export const TOOLS: ToolSchema[] = [
  read('get_account', 'the items of account {user}', { user }, { item, id, status, price }),
  read('list_stock', 'the {item} in stock', { item }, { item, id, price }),
  write('cancel_item', 'cancel the {item}', { item, id }),
  write('rush_item', 'rush the {item}', { item, id }),
  write('return_item', 'return the {item}', { item, id, refund }),
  write('exchange_item', 'exchange the {item} for the {new_item}', { item, id, new_item: item, new_id: id }),
  write('change_address', 'change the address to {city}', { user, city }),
];

const precondition = (tool: string, value: string): PolicyRule => ({
  kind: 'precondition',
  tool,
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
