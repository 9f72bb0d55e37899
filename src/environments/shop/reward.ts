/**
 * The all-or-nothing reward. Invariant: reward is 1 exactly if the final database equals the reference's and the user was told
 * what the task asks for and nothing false, in a conversation that ended regularly.
 */
import type { Action, Evaluation, Reference, StopReason } from '../../domain/environment';
import { call, type Database } from './database';
import { REQUIRED, type ItemRequest, type Request, type ShopTask } from './tasks';
import { TEXTS } from './tools';

export const isForbidden = (request: ItemRequest): boolean => request.target.status !== REQUIRED[request.verb];

/** The amount of a request: the refund of a return, else the item's price. */
export const amountOf = (request: ItemRequest): number => request.target.price - (request.opened ? 5 : 0);

/** The write that fulfils a request. */
export function actionOf(request: Request, user: string): Action {
  if (request.verb === 'address') return { name: 'change_address', arguments: { user, city: request.city } };
  const { verb, target, replacement } = request;
  const args: Record<string, unknown> = { item: target.item, id: target.id };
  if (verb === 'return') args['refund'] = amountOf(request);
  if (replacement) Object.assign(args, { new_item: replacement.item, new_id: replacement.id });
  return { name: `${verb}_item`, arguments: args };
}

/** The writes and the told facts of a right solution. */
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
