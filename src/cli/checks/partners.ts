/** The models that play the other parties of the target. Invariant: each is asked what a rollout asks it, once, with its own key. */
import type { Campaign } from '../../domain/campaign';
import type { ChatModel } from '../../domain/endpoints';
import { kindOf } from '../../domain/kinds';
import { environments } from '../../environments';
import { describeSpec } from '../../environments/open';
import type { Role } from '../../partners/errors';
import { openPartners } from '../../partners/open';
import { messageOf } from '../errors';
import { failed, passed, type Check } from './check';

export async function checkPartners({ target }: Pick<Campaign, 'target'>, kinds = environments): Promise<Check[]> {
  const { user, judge } = describeSpec(target, kinds);
  const missing = !user && kindOf(kinds, target).needsUser;
  return [
    ...(missing ? [failed('simulated user', 'target.user is missing', 'name its url and model there')] : []),
    ...(user ? [await check('simulated user', user, 'user')] : []),
    ...(judge ? [await check('judge', judge, 'judge')] : []),
  ];
}

async function check(name: string, model: ChatModel, role: Role): Promise<Check> {
  const question = [{ role: 'user', content: 'Say OK.' } as const];
  try {
    const partners = openPartners({ [role]: model });
    await partners.user?.speak({ messages: question, tools: [], seed: 0 });
    await partners.judge?.answer(question);
    return passed(name, `${model.model} at ${model.url} answers`);
  } catch (error) {
    return failed(name, messageOf(error), `start it, or correct target.${role} in the campaign file`);
  }
}
