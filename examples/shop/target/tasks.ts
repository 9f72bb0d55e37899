/**
 * The agent's policy and tools, and the procedural task generator. Every value of an argument or observation is described by the schemas, every word is one
 * token of the base model, and a write's `description` is the request with its arguments in braces: generators need no more. A task is a function of its
 * id and the parameters; a first user message belongs to one split by its hash, whatever the parameters; the skills of a task never leave this folder.
 */
import type { EnvironmentDescription, JsonSchema, Split, ToolSchema } from 'trace-campaign/plugin';
import { mixedHash, type Random, random } from './random';
import type { Database, Item, Status } from './shop';

export const COLORS = 'red blue green black white grey pink brown'.split(' ');
const KINDS = 'lamp chair desk sofa rug shelf mirror clock vase stool bed table'.split(' ');
const CITIES = 'paris rome oslo lima cairo delhi tokyo quito'.split(' ');
const PRICES = Array.from({ length: 18 }, (_, i) => 10 + 5 * i);

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

/** The schemas of all values of arguments and observations. */
export const FIELDS = {
  item: { type: 'string', pattern: `^(${COLORS.join('|')}) (${KINDS.join('|')})$` },
  id: { type: 'string', pattern: '^i[0-9]{2}$' },
  user: { type: 'string', pattern: '^u[0-9]{2}$' },
  price: { type: 'integer', minimum: 10, maximum: 95, multipleOf: 5 },
  refund: { type: 'integer', minimum: 5, maximum: 95, multipleOf: 5 },
  status: { type: 'string', enum: ['pending', 'delivered'] },
  city: { type: 'string', enum: CITIES },
} satisfies Record<string, JsonSchema>;
const { item, id, user, price, refund, status, city } = FIELDS;

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

const precondition = (tool: string, value: Status) => ({
  kind: 'precondition',
  tool,
  field: 'status',
  value,
  denial: TEXTS.denial,
});

export const RULES: EnvironmentDescription['rules'] = [
  precondition('cancel_item', 'pending'),
  precondition('rush_item', 'pending'),
  precondition('return_item', 'delivered'),
  precondition('exchange_item', 'delivered'),
  { kind: 'value', tool: 'return_item', argument: 'refund', field: 'price', marker: TEXTS.opened, offset: -5 },
  { kind: 'tell', question: TEXTS.howMuch('{item}'), field: 'price' },
  { kind: 'ask', argument: 'user', question: TEXTS.askAccount, answer: TEXTS.account('%') },
];

/** The skills that a task may need beyond looking an item up and acting on it. */
export const SKILLS = ['complete_all', 'refuse', 'choose', 'tell', 'compute', 'ask'] as const;
export type Skill = (typeof SKILLS)[number];

type Verb = 'cancel' | 'rush' | 'return' | 'exchange' | 'address';

/** The status that the policy demands before an item may be acted on. */
export const REQUIRED: Record<Exclude<Verb, 'address'>, Status> = {
  cancel: 'pending',
  rush: 'pending',
  return: 'delivered',
  exchange: 'delivered',
};

export interface ItemRequest {
  verb: Exclude<Verb, 'address'>;
  target: Item;
  /** Another item of the same kind in the account. */
  twin?: Item;
  opened: boolean;
  /** The user wants to hear the amount. */
  tell: boolean;
  /** The item that an exchange gives instead. */
  replacement?: { item: string; id: string; price: number };
}
export type Request = { verb: 'address'; city: string } | ItemRequest;

export const itemRequests = (requests: readonly Request[]): ItemRequest[] =>
  requests.filter((request) => request.verb !== 'address');

export interface ShopTask {
  id: string;
  skills: Skill[];
  firstMessage: string;
  requests: Request[];
  database: Database;
}

/** Draws 1-3 skills that can occur together. */
function drawSkills(rng: Random): Skill[] {
  const u = rng.next();
  const count = u < 0.5 ? 1 : u < 0.85 ? 2 : 3;
  for (;;) {
    const drawn = rng.sample(SKILLS, count);
    const has = (skill: Skill): boolean => drawn.includes(skill);
    // A single request that is refused has no refund to compute.
    if (!(has('refuse') && has('compute') && !has('complete_all'))) return SKILLS.filter(has);
  }
}

/** Skills about an item go to one request each; refusing and computing to different ones. */
function drawCarried(rng: Random, skills: readonly Skill[], count: number): Set<Skill>[] {
  const carried = Array.from({ length: count }, () => new Set<Skill>());
  for (const skill of ['refuse', 'compute', 'choose', 'tell'] as const) {
    if (!skills.includes(skill)) continue;
    const free = carried.filter((of) => !(skill === 'compute' && of.has('refuse')));
    rng.pick(free).add(skill);
  }
  return carried;
}

/** Which verb a request gets, from the skills that it carries. */
function drawVerb(rng: Random, carried: ReadonlySet<Skill>, taken: readonly Verb[]): Verb {
  if (carried.has('compute')) return 'return';
  const verbs: Verb[] = ['cancel', 'cancel', 'rush', 'rush', 'return', 'return'];
  // A refused return has no refund to state.
  if (carried.has('tell')) return rng.pick(carried.has('refuse') ? ['cancel', 'rush'] : verbs);
  if (!taken.includes('exchange')) verbs.push('exchange');
  if (carried.size === 0 && !taken.includes('address')) verbs.push('address');
  return rng.pick(verbs);
}

function phrase(request: Request): string {
  if (request.verb === 'address') return `change the address to ${request.city}`;
  const { verb, target, replacement, opened } = request;
  const suffix = (replacement ? ` for the ${replacement.item}` : '') + (opened ? ` , ${TEXTS.opened}` : '');
  return `${verb} the ${target.item}${suffix}`;
}

const twoDigits = (letter: string, n: number): string => `${letter}${String(n).padStart(2, '0')}`;

/** Every draw comes in its order: another order is other tasks. */
function drawTask({ id, seed }: { id: string; seed: string }): ShopTask {
  const rng = random(seed);
  const skills = drawSkills(rng);
  const carried = drawCarried(rng, skills, skills.includes('complete_all') ? 2 : 1);
  const verbs: Verb[] = [];
  for (const one of carried) verbs.push(drawVerb(rng, one, verbs));

  const colors = rng.shuffle(COLORS);
  const kinds = rng.shuffle(KINDS);
  const ids = rng.sample(
    Array.from({ length: 100 }, (_, n) => twoDigits('i', n)),
    8,
  );
  const make = (kind: string, status: Status): Item => ({
    item: `${colors.pop()} ${kind}`,
    id: ids.pop()!,
    status,
    price: rng.pick(PRICES),
  });
  const items: Item[] = [];
  const stock: Database['stock'] = [];
  const requests = carried.map((needed, n): Request => {
    const verb = verbs[n]!;
    if (verb === 'address') return { verb, city: rng.pick(CITIES) };
    const allowed = REQUIRED[verb];
    const other = allowed === 'pending' ? 'delivered' : 'pending';
    const kind = kinds.pop()!;
    const target = make(kind, needed.has('refuse') ? other : allowed);
    items.push(target);
    const request: ItemRequest = { verb, target, opened: needed.has('compute'), tell: needed.has('tell') };
    // The twin could be acted on, so that taking it is a mistake of choice alone.
    if (needed.has('choose')) items.push((request.twin = make(kind, allowed)));
    if (verb === 'exchange') {
      const { item, id: newId, price } = make(kind, 'delivered');
      stock.push((request.replacement = { item, id: newId, price }));
    }
    return request;
  });
  const size = rng.chance(0.7) ? 3 : 4;
  while (items.length < size) items.push(make(kinds.pop()!, rng.pick(['pending', 'delivered'])));

  const user = twoDigits('u', rng.below(100));
  const asked = itemRequests(requests).find(({ tell }) => tell);
  const sentences = [
    ...(skills.includes('ask') ? [] : [TEXTS.account(user)]),
    `${requests.map(phrase).join(' and ')} .`,
    ...(asked ? [TEXTS.howMuch(asked.target.item)] : []),
  ];
  const database = { user, city: '', items: rng.shuffle(items), stock };
  return { id, skills, firstMessage: sentences.join(' '), requests, database };
}

export const splitOf = (firstMessage: string): Split =>
  mixedHash(`split ${firstMessage}`) % 4 === 0 ? 'test' : 'train';

/** An endless stream of tasks of one split, named `<stream>-0`, `<stream>-1`, ... */
export function* taskStream(stream: string, split: Split): Generator<ShopTask> {
  for (let draw = 0, n = 0; ; draw++) {
    const task = drawTask({ id: `${stream}-${n}`, seed: `${stream} ${draw}` });
    if (splitOf(task.firstMessage) !== split) continue;
    n++;
    yield task;
  }
}

/** The first of a stream that have different first messages. */
export function drawTasks({ stream, split, count }: { stream: string; split: Split; count: number }): ShopTask[] {
  const byMessage = new Map<string, ShopTask>();
  for (const task of taskStream(stream, split)) {
    const { size } = byMessage;
    if (size === count) break;
    if (!byMessage.has(task.firstMessage)) byMessage.set(task.firstMessage, { ...task, id: `${stream}-${size}` });
  }
  return [...byMessage.values()];
}
