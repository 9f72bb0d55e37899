/**
 * The procedural task generator: a task is a function of its id and the parameters. A first user message belongs to one
 * split by its hash, whatever the parameters; the skills of a task never leave this folder.
 */
import { z } from 'zod';
import type { Split } from '../../domain/environment';
import type { Database, Item, Status } from './database';
import { hash, random, type Random } from './random';
import { CITIES, COLORS, KINDS, PRICES, TEXTS } from './tools';

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

export type Request =
  | { verb: 'address'; city: string }
  | {
      verb: Exclude<Verb, 'address'>;
      target: Item;
      /** Another item of the same kind in the account. */
      twin?: Item;
      opened: boolean;
      /** The user wants to hear the amount. */
      tell: boolean;
      /** The item that an exchange gives instead. */
      replacement?: { item: string; id: string; price: number };
    };
export type ItemRequest = Exclude<Request, { verb: 'address' }>;

export interface ShopTask {
  id: string;
  skills: Skill[];
  firstMessage: string;
  requests: Request[];
  database: Database;
}

/** Of the tasks that need several skills, those that need three. */
const THREE_SKILLS = 0.3;

/** Draws 1-3 skills that can occur together: with one request, what is refused has no refund to compute. */
function drawSkills(rng: Random, { requests, several }: TaskSetting): Skill[] {
  const u = rng.next();
  const count = u < 1 - several ? 1 : u < 1 - THREE_SKILLS * several ? 2 : 3;
  const possible = requests === 1 ? SKILLS.filter((skill) => skill !== 'complete_all') : SKILLS;
  for (;;) {
    const drawn = rng.sample(possible, count);
    const has = (skill: Skill): boolean => drawn.includes(skill);
    if (!(has('refuse') && has('compute') && !has('complete_all'))) return SKILLS.filter(has);
  }
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

function drawCount(rng: Random, skills: readonly Skill[], { requests }: TaskSetting): number {
  if (!skills.includes('complete_all')) return 1;
  return requests === 2 ? 2 : 2 + rng.below(requests - 1);
}

function drawTask({ id, seed, setting }: { id: string; seed: string; setting: TaskSetting }): ShopTask {
  const rng = random(seed);
  const skills = drawSkills(rng, setting);
  const count = drawCount(rng, skills, setting);
  // Skills about an item go to one request each; refusing and computing to different ones.
  const carried = Array.from({ length: count }, () => new Set<Skill>());
  for (const skill of ['refuse', 'compute', 'choose', 'tell'] as const) {
    if (!skills.includes(skill)) continue;
    const free = carried.filter((c) => !(skill === 'compute' && c.has('refuse')));
    rng.pick(free).add(skill);
  }
  const verbs: Verb[] = [];
  for (const c of carried) verbs.push(drawVerb(rng, c, verbs));

  const colors = rng.shuffle(COLORS);
  const kinds = rng.shuffle(KINDS);
  const ids = rng.sample(
    Array.from({ length: 100 }, (_, i) => `i${String(i).padStart(2, '0')}`),
    8,
  );
  const make = (kind: string, status: Status): Item => ({
    item: `${colors.pop()} ${kind}`,
    id: ids.pop() as string,
    status,
    price: rng.pick(PRICES),
  });
  const items: Item[] = [];
  const stock: Database['stock'] = [];
  const requests = carried.map((c, i): Request => {
    const verb = verbs[i] as Verb;
    if (verb === 'address') return { verb, city: rng.pick(CITIES) };
    const allowed = REQUIRED[verb];
    const other = allowed === 'pending' ? 'delivered' : 'pending';
    const kind = kinds.pop() as string;
    const target = make(kind, c.has('refuse') ? other : allowed);
    items.push(target);
    const request: ItemRequest = { verb, target, opened: c.has('compute'), tell: c.has('tell') };
    // The twin could be acted on, so that taking it is a mistake of choice alone.
    if (c.has('choose')) items.push((request.twin = make(kind, allowed)));
    if (verb === 'exchange') {
      const { item, id: newId, price } = make(kind, 'delivered');
      stock.push((request.replacement = { item, id: newId, price }));
    }
    return request;
  });
  const size = rng.chance(0.7) ? 3 : 4;
  while (items.length < size) items.push(make(kinds.pop() as string, rng.pick(['pending', 'delivered'])));

  const user = `u${String(rng.below(100)).padStart(2, '0')}`;
  const asked = requests.find((r): r is ItemRequest => r.verb !== 'address' && r.tell);
  const sentences = [`${requests.map(phrase).join(' and ')} .`];
  if (!skills.includes('ask')) sentences.unshift(TEXTS.account(user));
  if (asked) sentences.push(TEXTS.howMuch(asked.target.item));
  return {
    id,
    skills,
    firstMessage: sentences.join(' '),
    requests,
    database: { user, city: '', items: rng.shuffle(items), stock },
  };
}

export const splitOf = (firstMessage: string): Split => (hash(`split ${firstMessage}`) % 4 === 0 ? 'test' : 'train');

/** An endless stream of tasks of one split, named `<stream>-0`, `<stream>-1`, ...; `distinct`: no first message twice. */
export function* taskStream(o: {
  stream: string;
  split: Split;
  distinct: boolean;
  setting?: TaskSetting;
}): Generator<ShopTask> {
  const { setting = completeParameters() } = o;
  const seen = new Set<string>();
  for (let draw = 0, n = 0; ; draw++) {
    const task = drawTask({ id: `${o.stream}-${n}`, seed: `${o.stream} ${draw}`, setting });
    if (splitOf(task.firstMessage) !== o.split || seen.has(task.firstMessage)) continue;
    if (o.distinct) seen.add(task.firstMessage);
    n++;
    yield task;
  }
}

const drawn = new Map<string, ReadonlyMap<string, ShopTask>>();

/** All tasks of both splits by id; those of one setting are drawn once. */
export function shopTasks(given: Partial<ShopParameters> = {}): ReadonlyMap<string, ShopTask> {
  const setting = completeParameters(given);
  const { requests, several, trainTasks, testTasks } = setting;
  const key = [requests, several, trainTasks, testTasks].join(' ');
  const known = drawn.get(key);
  if (known) return known;
  const all = new Map<string, ShopTask>();
  for (const [split, count] of [['train', trainTasks] as const, ['test', testTasks] as const]) {
    const stream = taskStream({ stream: split, split, distinct: true, setting });
    for (let i = 0; i < count; i++) {
      const task = stream.next().value as ShopTask;
      all.set(task.id, task);
    }
  }
  drawn.set(key, all);
  return all;
}

/** The skills that a task carries: for demonstrations and tests, never shown to an analyst. */
export function skillsOf(id: string, parameters: Partial<ShopParameters> = {}): Skill[] {
  const task = shopTasks(parameters).get(id);
  if (!task) throw new Error(`shop: unknown task "${id}": use an id from tasks()`);
  return task.skills;
}

const MOST_TASKS = 10_000;

/** How many tasks each split has: larger counts add tasks after those that are there. */
export const taskCounts = {
  trainTasks: z.number().int().min(2).max(MOST_TASKS).default(400).describe('Tasks of the train split.'),
  testTasks: z.number().int().min(1).max(MOST_TASKS).default(200).describe('Tasks of the test split.'),
};

export const shopParameters = {
  requests: z.number().int().min(1).max(3).default(2).describe('Most things that one conversation asks for.'),
  several: z.number().min(0).max(1).default(0.5).describe('Share of the tasks that need several skills.'),
  ...taskCounts,
};

const parametersSchema = z.strictObject(shopParameters);
export type ShopParameters = z.infer<typeof parametersSchema>;

type TaskSetting = Pick<ShopParameters, 'requests' | 'several'>;

/** Parameters that are not given have their defaults. Throws a ZodError that names a wrong one. */
export const completeParameters = (given: Partial<ShopParameters> = {}): ShopParameters =>
  parametersSchema.parse(given);

export function versionOf(setting: ShopParameters): string {
  const defaults = completeParameters();
  const names = Object.keys(shopParameters) as (keyof ShopParameters)[];
  const changed = names.flatMap((name) => (setting[name] === defaults[name] ? [] : [`${name} ${setting[name]}`]));
  return changed.length === 0 ? '1' : `1 (${changed.join(', ')})`;
}
