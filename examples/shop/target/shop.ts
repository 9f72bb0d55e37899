/**
 * The target environment `shop`: a help desk with a scripted user. The reward is 1 if the final database equals the reference's, the agent stated the
 * required facts and nothing false, and the conversation ended regularly; else 0. A bad call changes nothing and is answered by an error; the tools permit
 * what the policy forbids, since obeying the policy is the agent's part.
 */
import {
  type Action,
  type AssistantMessage,
  type Environment,
  type EnvironmentDescription,
  type Episode,
  type Message,
  type Reference,
  type StepResult,
  type StopReason,
  valueProblem,
} from 'trace-campaign/plugin';
import {
  drawTasks,
  type ItemRequest,
  itemRequests,
  type Request,
  REQUIRED,
  type ShopTask,
  POLICY,
  RULES,
  TEXTS,
  TOOLS,
} from './tasks';

export type Status = 'pending' | 'delivered';

interface Article {
  /** "<color> <kind>" */
  item: string;
  id: string;
  price: number;
}

export interface Item extends Article {
  status: Status;
}

export interface Database {
  user: string;
  /** Empty until changed. */
  city: string;
  /** The account's items, in the order in which they are listed; an item that was acted on has an `outcome` and is not listed. */
  items: (Item & { outcome?: string })[];
  stock: Article[];
}

type Arguments = Record<string, unknown>;

/** Marks the listed item with these words and this id. */
function settle(db: Database, { item, id }: Arguments, outcome: string): string {
  const found = db.items.find((one) => one.id === id && one.item === item && one.outcome === undefined);
  if (!found) return TEXTS.unknownItem;
  found.outcome = outcome;
  return TEXTS.ok;
}

const handlers: Record<string, (db: Database, args: Arguments) => string> = {
  get_account(db, { user }) {
    if (user !== db.user) return TEXTS.unknownAccount;
    const listed = db.items.filter(({ outcome }) => outcome === undefined);
    return listed.map(({ item, id, status, price }) => `${item} ${id} ${status} ${price}`).join(' ; ') || TEXTS.noItems;
  },
  list_stock(db, { item: wanted }) {
    const found = db.stock.filter(({ item }) => item === wanted);
    return found.map(({ item, id, price }) => `${item} ${id} ${price}`).join(' ; ') || TEXTS.unknownItem;
  },
  cancel_item: (db, args) => settle(db, args, 'cancelled'),
  rush_item: (db, args) => settle(db, args, 'rushed'),
  return_item: (db, args) => settle(db, args, `returned ${args.refund}`),
  exchange_item(db, args) {
    const isInStock = db.stock.some(({ item, id }) => item === args.new_item && id === args.new_id);
    return isInStock ? settle(db, args, `exchanged ${args.new_id}`) : TEXTS.unknownItem;
  },
  change_address(db, { user, city }) {
    if (user !== db.user) return TEXTS.unknownAccount;
    db.city = String(city);
    return TEXTS.ok;
  },
};

function call(db: Database, { name, arguments: args }: Action): string {
  const tool = TOOLS.find((one) => one.name === name);
  if (!tool) return TEXTS.unknownTool;
  return valueProblem(tool.parameters, args) === undefined ? handlers[name]!(db, args) : TEXTS.badArguments;
}

const isError = (observation: string): boolean => observation.startsWith('error');

const MAX_ERRORS = 3;

const MAX_STEPS = 10;

const DESCRIPTION: EnvironmentDescription = {
  name: 'shop',
  /** Changes with anything that changes tasks or rewards. */
  version: '1',
  policy: POLICY,
  tools: TOOLS,
  maxSteps: MAX_STEPS,
  hasReference: true,
  rules: RULES,
};

const COUNTS = { train: 400, test: 200 };
let drawn: ReadonlyMap<string, ShopTask> | undefined;

/** The tasks of both splits by id. */
export function shopTasks(): ReadonlyMap<string, ShopTask> {
  const draw = (split: 'train' | 'test') => drawTasks({ stream: split, split, count: COUNTS[split] });
  return (drawn ??= new Map([...draw('train'), ...draw('test')].map((task) => [task.id, task])));
}

export const createShop = (): Environment => ({
  describe: async () => DESCRIPTION,
  tasks: async (split) => Array.from({ length: COUNTS[split] }, (_, n) => ({ id: `${split}-${n}`, split })),
  reset: async ({ id }) => {
    const task = shopTasks().get(id);
    if (!task) throw new Error(`shop: unknown task "${id}": use an id from tasks()`);
    return openEpisode(task);
  },
  close: async () => undefined,
});

/** Opens an episode: it begins with the policy and the user's first words, and MAX_STEPS messages of the agent end it. */
export function openEpisode(task: ShopTask): Episode {
  const state = structuredClone(task.database);
  const texts: string[] = [];
  let errors = 0;

  function answer({ content, toolCalls = [] }: AssistantMessage): StepResult {
    if (content.trim() !== '') texts.push(content);
    if (toolCalls.length === 0) {
      if (/\baccount\b.*\?/is.test(content))
        return { messages: [{ role: 'user', content: TEXTS.account(state.user) }], done: false };
      return { messages: [{ role: 'user', content: TEXTS.bye }], done: true, stopReason: 'user_stop' };
    }
    const messages = toolCalls.map((one): Message => ({ role: 'tool', toolCallId: one.id, content: call(state, one) }));
    errors += messages.filter((message) => isError(message.content)).length;
    return errors >= MAX_ERRORS ? { messages, done: true, stopReason: 'too_many_errors' } : { messages, done: false };
  }

  function evaluate(reason: StopReason) {
    const reference = referenceOf(task);
    const wanted = structuredClone(task.database);
    for (const action of reference.actions) call(wanted, action);
    const isRegular = reason === 'user_stop' || reason === 'agent_stop';
    const db = Number(JSON.stringify(wanted) === JSON.stringify(state));
    const info = Number(isRegular && isInformed(task, reference, texts));
    return { reward: db * info, breakdown: { db, info }, reference };
  }

  let steps = 0;
  return {
    start: {
      messages: [
        { role: 'system', content: POLICY },
        { role: 'user', content: task.firstMessage },
      ],
      tools: TOOLS,
      maxSteps: MAX_STEPS,
    },
    async step(message) {
      const result = answer(message);
      steps += 1;
      return result.done || steps < MAX_STEPS ? result : { ...result, done: true, stopReason: 'max_steps' };
    },
    evaluate: async (reason) => evaluate(reason),
    close: async () => undefined,
  };
}

export const isForbidden = ({ target, verb }: ItemRequest): boolean => target.status !== REQUIRED[verb];

/** The amount of a request: the refund of a return, else the item's price. */
export const amountOf = ({ target, opened }: ItemRequest): number => target.price - (opened ? 5 : 0);

export function actionOf(request: Request, user: string): Action {
  if (request.verb === 'address') return { name: 'change_address', arguments: { user, city: request.city } };
  const { verb, target, replacement } = request;
  const args = {
    item: target.item,
    id: target.id,
    ...(verb === 'return' && { refund: amountOf(request) }),
    ...(replacement && { new_item: replacement.item, new_id: replacement.id }),
  };
  return { name: `${verb}_item`, arguments: args };
}

export function referenceOf(task: ShopTask): Reference {
  const about = itemRequests(task.requests);
  const refused: Request[] = about.filter(isForbidden);
  const wanted = task.requests.filter((request) => !refused.includes(request));
  const amounts = about.filter(({ tell }) => tell).map((request) => String(amountOf(request)));
  return {
    actions: wanted.map((request) => actionOf(request, task.database.user)),
    tell: [...(refused.length > 0 ? [TEXTS.denial] : []), ...amounts],
  };
}

/** Returns true if all facts were stated, nothing was denied without need, and every stated amount is right. */
function isInformed({ requests }: ShopTask, { tell }: Reference, texts: readonly string[]): boolean {
  const words =
    texts
      .join(' ')
      .toLowerCase()
      .match(/[a-z]+|\d+/g) ?? [];
  const isSaid = (fact: string): boolean => ` ${words.join(' ')} `.includes(` ${fact} `);
  const right = itemRequests(requests).map((request) => String(amountOf(request)));
  const isDenied = isSaid(TEXTS.denial) && !tell.includes(TEXTS.denial);
  return tell.every(isSaid) && !isDenied && words.every((word) => !/^\d/.test(word) || right.includes(word));
}
