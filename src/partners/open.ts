/** From an environment's spec to the models that it needs beside the policy. */
import type { ChatModel } from '../domain/campaign';
import type { Partners } from './types';

type Models = { user?: ChatModel | undefined; judge?: ChatModel | undefined };

export function openPartners({ user, judge }: Models): Partners {
  if (user ?? judge) throw new Error('simulated users and judges are not built yet');
  return {};
}
