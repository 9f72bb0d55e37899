/** A scripted policy that solves every task, or makes the characteristic mistake of each skill that it lacks. */
import type { AssistantMessage, Evaluation, Message } from 'trace-campaign/plugin';
import type { Random } from './random';
import { actionOf, amountOf, isForbidden, openEpisode } from './shop';
import { itemRequests, type Request, type ShopTask, type Skill, TEXTS } from './tasks';

interface Played {
  task: ShopTask;
  lacks: ReadonlySet<Skill>;
  rng: Random;
}

/** Returns the request as the agent understands it without the skills that it lacks. */
function understood(request: Request, lacks: ReadonlySet<Skill>): Request {
  if (request.verb === 'address') return request;
  const target = (lacks.has('choose') && request.twin) || request.target;
  return { ...request, target, opened: request.opened && !lacks.has('compute') };
}

/** The agent's side of the conversation: yields its messages in turn; the environment's answers need not be read. */
export function* agentMessages({ task, lacks, rng }: Played): Generator<AssistantMessage> {
  const { user } = task.database;
  let calls = 0;
  const say = (content: string): AssistantMessage => ({ role: 'assistant', content });
  const use = (name: string, args: Record<string, unknown>): AssistantMessage => ({
    ...say(''),
    toolCalls: [{ id: `call_${calls++}`, name, arguments: args }],
  });

  if (task.skills.includes('ask')) {
    if (lacks.has('ask')) {
      const number = (Number(user.slice(1)) + 1 + rng.below(99)) % 100;
      yield use('get_account', { user: `u${String(number).padStart(2, '0')}` });
      return yield say(TEXTS.sorry);
    }
    yield say(TEXTS.askAccount);
  }
  yield use('get_account', { user });

  const requests = task.requests.map((request) => understood(request, lacks));
  const attended = lacks.has('complete_all') ? requests.slice(0, 1) : requests;
  const isDenied = (request: Request): boolean =>
    request.verb !== 'address' && isForbidden(request) && !lacks.has('refuse');
  const granted = attended.filter((request) => !isDenied(request));
  for (const request of granted) {
    if (request.verb === 'exchange' && request.replacement) yield use('list_stock', { item: request.replacement.item });
    const { name, arguments: args } = actionOf(request, user);
    yield use(name, args);
  }
  const told = lacks.has('tell') ? [] : itemRequests(requests).filter(({ tell }) => tell);
  yield say(
    [
      ...(granted.length > 0 ? [TEXTS.done] : []),
      ...(granted.length < attended.length ? [`${TEXTS.denial} .`] : []),
      ...told.map((request) => TEXTS.amount(request.target.item, amountOf(request))),
    ].join(' '),
  );
}

/** Plays the scripted policy in the real episode and returns the whole conversation with its evaluation. */
export async function demonstrate(played: Played): Promise<{ messages: Message[]; evaluation: Evaluation }> {
  const episode = openEpisode(played.task);
  const messages: Message[] = [...episode.start.messages];
  for (const message of agentMessages(played)) {
    const result = await episode.step(message);
    messages.push(message, ...result.messages);
    if (result.done) return { messages, evaluation: await episode.evaluate(result.stopReason ?? 'user_stop') };
  }
  throw new Error(`shop: the scripted policy did not finish task "${played.task.id}"`);
}
