/** The models that play the other parties of the target. Invariant: each is asked what a rollout asks it, once, with its own key. */
import type { Campaign } from '../../domain/campaign';
import type { ChatModel } from '../../domain/environment-spec';
import { messageOf } from '../errors';
import { lazy } from '../lazy';
import { failed, passed, type Check } from './check';

/** Benchmarks whose user is always played by a model. */
const NEEDS_USER = ['tau2', 'toolsandbox'];

export async function checkPartners({ target }: Campaign): Promise<Check[]> {
  const user = 'user' in target ? target.user : undefined;
  const judge = 'judge' in target ? target.judge : undefined;
  const missing = !user && NEEDS_USER.includes(target.kind);
  return [
    ...(missing ? [failed('simulated user', 'target.user is missing', 'name its url and model there')] : []),
    ...(user ? [await check('simulated user', user, 'user')] : []),
    ...(judge ? [await check('judge', judge, 'judge')] : []),
  ];
}

async function check(name: string, model: ChatModel, role: 'user' | 'judge'): Promise<Check> {
  const question = [{ role: 'user', content: 'Say OK.' } as const];
  try {
    const partners = lazy.partners().openPartners({ [role]: model });
    await partners.user?.speak({ messages: question, tools: [], seed: 0 });
    await partners.judge?.answer(question);
    return passed(name, `${model.model} at ${model.url} answers`);
  } catch (error) {
    return failed(name, messageOf(error), `start it, or correct target.${role} in the campaign file`);
  }
}
