/**
 * What the agent is shown, and the procedural task generator. Every value of an argument or observation is described by the schemas, every word is one
 * token of the base model, and a write's `description` is the request with its arguments in braces: generators need no more. A task is a function of its
 * id and the parameters; a first user message belongs to one split by its hash, whatever the parameters; the skills of a task never leave this folder.
 */
import { type JsonSchema, type Split, type ToolSchema, z } from 'campaign/plugin';
import { mixedHash, type Random, random } from './in-process';
import type { Database, Item, Status } from './shop';
import type { PolicyRule } from '../policy-rules';

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

/** What a task needs beyond looking an item up and acting on it. */
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

/** What a campaign file may set, beside the counts of tasks. */
export const settingFields = {
  requests: z.number().int().min(1).max(3).default(2).describe('Most things that one conversation asks for.'),
  several: z.number().min(0).max(1).default(0.5).describe('Share of the tasks that need several skills.'),
};
const settingSchema = z.object(settingFields);
type Setting = z.infer<typeof settingSchema>;

/** Of the tasks that need several skills, those that need three. */
const THREE_SKILLS = 0.3;

/** Draws 1-3 skills that can occur together: with one request, what is refused has no refund to compute. */
function drawSkills(rng: Random, { requests, several }: Setting): Skill[] {
  const u = rng.next();
  const count = u < 1 - several ? 1 : u < 1 - THREE_SKILLS * several ? 2 : 3;
  const possible = requests === 1 ? SKILLS.filter((skill) => skill !== 'complete_all') : SKILLS;
  for (;;) {
    const drawn = rng.sample(possible, count);
    const has = (skill: Skill): boolean => drawn.includes(skill);
    if (!(has('refuse') && has('compute') && !has('complete_all'))) return SKILLS.filter(has);
  }
}

function drawCount(rng: Random, skills: readonly Skill[], { requests }: Setting): number {
  if (!skills.includes('complete_all')) return 1;
  return requests === 2 ? 2 : 2 + rng.below(requests - 1);
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
  // A refused return has no refund to tell.
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
function drawTask({ id, seed, setting }: { id: string; seed: string; setting: Setting }): ShopTask {
  const rng = random(seed);
  const skills = drawSkills(rng, setting);
  const carried = drawCarried(rng, skills, drawCount(rng, skills, setting));
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

interface Stream {
  stream: string;
  split: Split;
  setting?: Setting;
}

/** An endless stream of tasks of one split, named `<stream>-0`, `<stream>-1`, ... */
export function* taskStream({ stream, split, setting = settingSchema.parse({}) }: Stream): Generator<ShopTask> {
  for (let draw = 0, n = 0; ; draw++) {
    const task = drawTask({ id: `${stream}-${n}`, seed: `${stream} ${draw}`, setting });
    if (splitOf(task.firstMessage) !== split) continue;
    n++;
    yield task;
  }
}

/** The first of a stream that have different first messages. */
export function drawTasks({ count, ...of }: Stream & { count: number }): ShopTask[] {
  const byMessage = new Map<string, ShopTask>();
  for (const task of taskStream(of)) {
    if (byMessage.size === count) break;
    const { size } = byMessage;
    if (!byMessage.has(task.firstMessage)) byMessage.set(task.firstMessage, { ...task, id: `${of.stream}-${size}` });
  }
  return [...byMessage.values()];
}
