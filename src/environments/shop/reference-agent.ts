/** A scripted policy that solves every task, or makes the characteristic mistake of each skill that it lacks. */
import type { Evaluation } from '../../domain/environment';
import type { AssistantMessage, Message } from '../../domain/messages';
import type { Random } from './random';
import { actionOf, amountOf, isForbidden, openEpisode } from './shop';
import type { ItemRequest, Request, ShopTask, Skill } from './tasks';
import { TEXTS } from './tools';

interface Demonstration {
  messages: Message[];
  evaluation: Evaluation;
}

/** What the agent takes a request to be, given what it lacks. */
function understood(request: ItemRequest, lacks: ReadonlySet<Skill>): ItemRequest {
  const target = request.twin && lacks.has('choose') ? request.twin : request.target;
  return { ...request, target, opened: request.opened && !lacks.has('compute') };
}

/** The agent's side of the conversation: yields its messages in turn; the environment's answers need not be read. */
export function* agentMessages(o: {
  task: ShopTask;
  lacks: ReadonlySet<Skill>;
  rng: Random;
}): Generator<AssistantMessage> {
  const { task, lacks } = o;
  const user = task.database.user;
  let calls = 0;
  const use = (name: string, args: Record<string, unknown>): AssistantMessage => ({
    role: 'assistant',
    content: '',
    toolCalls: [{ id: `call_${calls++}`, name, arguments: args }],
  });

  if (task.skills.includes('ask')) {
    if (lacks.has('ask')) {
      const number = (Number(user.slice(1)) + 1 + o.rng.below(99)) % 100;
      yield use('get_account', { user: `u${String(number).padStart(2, '0')}` });
      return yield { role: 'assistant', content: TEXTS.sorry };
    }
    yield { role: 'assistant', content: TEXTS.askAccount };
  }
  yield use('get_account', { user });

  const requests: Request[] = task.requests.map((r) => (r.verb === 'address' ? r : understood(r, lacks)));
  const attended = lacks.has('complete_all') ? requests.slice(0, 1) : requests;
  const said = { done: false, denied: false };
  for (const request of attended) {
    if (request.verb !== 'address' && isForbidden(request) && !lacks.has('refuse')) {
      said.denied = true;
      continue;
    }
    if (request.verb === 'exchange' && request.replacement) yield use('list_stock', { item: request.replacement.item });
    const { name, arguments: args } = actionOf(request, user);
    yield use(name, args);
    said.done = true;
  }

  const parts: string[] = [];
  if (said.done) parts.push(TEXTS.done);
  if (said.denied) parts.push(`${TEXTS.denial} .`);
  if (!lacks.has('tell')) {
    for (const r of requests) if (r.verb !== 'address' && r.tell) parts.push(TEXTS.amount(r.target.item, amountOf(r)));
  }
  yield { role: 'assistant', content: parts.join(' ') };
}

/** Plays the scripted policy in the real episode and returns the whole conversation with its evaluation. */
export async function demonstrate(o: {
  task: ShopTask;
  lacks: ReadonlySet<Skill>;
  rng: Random;
}): Promise<Demonstration> {
  const episode = openEpisode(o.task);
  const messages: Message[] = [...episode.start.messages];
  for (const message of agentMessages(o)) {
    messages.push(message);
    const result = await episode.step(message);
    messages.push(...result.messages);
    if (result.done) return { messages, evaluation: await episode.evaluate(result.stopReason ?? 'user_stop') };
  }
  throw new Error(`shop: the scripted policy did not finish task "${o.task.id}"`);
}
