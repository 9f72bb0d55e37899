/**
 * The target environment `shop`: a help desk with a scripted user. The reward is 1 if the final database is the
 * reference's and the user was told what the task asks for and nothing false, in a conversation that ended regularly;
 * else 0.
 */
import type {
  Action,
  Environment,
  Episode,
  Evaluation,
  Reference,
  StepResult,
  StopReason,
} from '../../domain/environment';
import type { AssistantMessage, Message } from '../../domain/messages';
import { call, type Database, isError } from './database';
import {
  completeParameters,
  type ItemRequest,
  type Request,
  REQUIRED,
  type ShopParameters,
  type ShopTask,
  shopTasks,
  versionOf,
} from './tasks';
import { POLICY, RULES, TEXTS, TOOLS } from './tools';

const MAX_STEPS = 10;
const MAX_ERRORS = 3;

/** Opens an episode of a task that need not be in a split. */
export function openEpisode(task: ShopTask): Episode {
  const db = structuredClone(task.database);
  const texts: string[] = [];
  let steps = 0;
  let errors = 0;

  const answer = (message: AssistantMessage): StepResult => {
    if (message.content.trim() !== '') texts.push(message.content);
    const calls = message.toolCalls ?? [];
    if (calls.length === 0) {
      if (/\baccount\b.*\?/is.test(message.content))
        return { messages: [{ role: 'user', content: TEXTS.account(db.user) }], done: false };
      return { messages: [{ role: 'user', content: TEXTS.bye }], done: true, stopReason: 'user_stop' };
    }
    const messages: Message[] = calls.map((c) => ({ role: 'tool', toolCallId: c.id, content: call(db, c) }));
    errors += messages.filter((m) => isError(m.content)).length;
    return errors >= MAX_ERRORS ? { messages, done: true, stopReason: 'too_many_errors' } : { messages, done: false };
  };

  return {
    start: {
      messages: [
        { role: 'system', content: POLICY },
        { role: 'user', content: task.firstMessage },
      ],
      tools: TOOLS,
      maxSteps: MAX_STEPS,
    },
    step: async (message) => {
      const result = answer(message);
      steps += 1;
      return result.done || steps < MAX_STEPS ? result : { ...result, done: true, stopReason: 'max_steps' };
    },
    evaluate: async (reason: StopReason) => evaluate({ task, final: db, texts, reason }),
    close: async () => {},
  };
}

export function createShop(given: Partial<ShopParameters> = {}): Environment {
  const parameters = completeParameters(given);
  const counts = { train: parameters.trainTasks, test: parameters.testTasks };
  return {
    describe: async () => ({
      name: 'shop',
      version: versionOf(parameters),
      policy: POLICY,
      tools: TOOLS,
      maxSteps: MAX_STEPS,
      hasReference: true,
      rules: RULES,
    }),
    tasks: async (split) => Array.from({ length: counts[split] }, (_, i) => ({ id: `${split}-${i}`, split })),
    reset: async ({ id }) => {
      const task = shopTasks(parameters).get(id);
      if (!task) throw new Error(`shop: unknown task "${id}": use an id from tasks()`);
      return openEpisode(task);
    },
    close: async () => {},
  };
}

export const isForbidden = (request: ItemRequest): boolean => request.target.status !== REQUIRED[request.verb];

/** The amount of a request: the refund of a return, else the item's price. */
export const amountOf = (request: ItemRequest): number => request.target.price - (request.opened ? 5 : 0);

export function actionOf(request: Request, user: string): Action {
  if (request.verb === 'address') return { name: 'change_address', arguments: { user, city: request.city } };
  const { verb, target, replacement } = request;
  const args: Record<string, unknown> = { item: target.item, id: target.id };
  if (verb === 'return') args['refund'] = amountOf(request);
  if (replacement) Object.assign(args, { new_item: replacement.item, new_id: replacement.id });
  return { name: `${verb}_item`, arguments: args };
}

export function referenceOf(task: ShopTask): Reference {
  const refused = (r: Request): boolean => r.verb !== 'address' && isForbidden(r);
  const tell = task.requests.some(refused) ? [TEXTS.denial as string] : [];
  for (const r of task.requests) if (r.verb !== 'address' && r.tell) tell.push(String(amountOf(r)));
  return { actions: task.requests.filter((r) => !refused(r)).map((r) => actionOf(r, task.database.user)), tell };
}

/** True if all facts were told, nothing was denied without need, and no told amount is wrong. */
function informed(task: ShopTask, tell: string[], texts: string[]): boolean {
  const words = ` ${
    texts
      .join(' ')
      .toLowerCase()
      .match(/[a-z]+|\d+/g)
      ?.join(' ') ?? ''
  } `;
  const said = (fact: string): boolean => words.includes(` ${fact} `);
  const right = new Set(task.requests.flatMap((r) => (r.verb === 'address' ? [] : [String(amountOf(r))])));
  const amounts = words.match(/(?<= )\d+(?= )/g) ?? [];
  return tell.every(said) && (tell.includes(TEXTS.denial) || !said(TEXTS.denial)) && amounts.every((a) => right.has(a));
}

/** Evaluates an episode from its final database and the texts that the agent wrote to the user. */
export function evaluate(o: { task: ShopTask; final: Database; texts: string[]; reason: StopReason }): Evaluation {
  const reference = referenceOf(o.task);
  const wanted = structuredClone(o.task.database);
  for (const action of reference.actions) call(wanted, action);
  const regular = o.reason === 'user_stop' || o.reason === 'agent_stop';
  const db = JSON.stringify(wanted) === JSON.stringify(o.final) ? 1 : 0;
  const info = regular && informed(o.task, reference.tell, o.texts) ? 1 : 0;
  return { reward: db * info, breakdown: { db, info }, reference };
}
