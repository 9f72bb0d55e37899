/**
 * Instances that say the text of a test task. A module cannot know which texts to keep clear of, so some of its instances may say one by
 * coincidence: their seeds are not used. Invariant: what is found is a function of the module's text, the seed and the hashes.
 */
import type { Message } from '../domain/messages';
import { forbiddenIn, isDistinctive } from './leakage';
import type { EnvironmentModule } from './module';
import { SandboxError } from './sandbox';
import { play } from './scripted-episode';

/**
 * Of a module's instances, how many may: where it is more, its texts are the target's own. In a language as small as that of `shop` up to
 * a fifth do in modules that talk like its users.
 */
export const LEAKING_SHARE = 1 / 3;

/** Where an instance says the text of a test task: seed and whose words they are. */
export interface Leak {
  seed: number;
  who: 'a user' | 'a tool' | 'the hint';
}

/** `forbidden`: messageHash() of the test tasks' texts. The first leak of each seed; the policy is the target's own. */
export async function leaksOf(
  module: EnvironmentModule,
  { seeds, forbidden }: { seeds: readonly number[]; forbidden: readonly string[] },
): Promise<Leak[]> {
  if (forbidden.length === 0) return [];
  const [isForbidden, isTelling] = [forbiddenIn(forbidden), forbiddenIn(forbidden.filter(isDistinctive))];
  const names = await module.exports();
  const leaks: Leak[] = [];
  for (const seed of seeds) {
    const hint = names.includes('hint') ? await said(async () => module.hint(await module.make(seed))) : undefined;
    const start = (await said(async () => module.start(await module.make(seed)))) ?? [];
    const solved = await said(async () => play(module, { seed, script: await module.solve(seed) }));
    const saidBy = (role: Message['role']) =>
      (solved?.messages ?? start).flatMap((one) => (one.role === role ? [one.content] : []));
    const first = start.flatMap((one) => (one.role === 'user' ? [one.content] : [])).join(' ');
    const who = [first, ...saidBy('user')].some(isForbidden)
      ? 'a user'
      : saidBy('tool').some(isTelling)
        ? 'a tool'
        : hint !== undefined && isTelling(hint) && 'the hint';
    if (who) leaks.push({ seed, who });
  }
  return leaks;
}

/** Nothing where the module fails: the self-test tells of it, and rollouts of the seed break. */
async function said<Result>(ask: () => Promise<Result>): Promise<Result | undefined> {
  try {
    return await ask();
  } catch (error) {
    if (error instanceof SandboxError) return undefined;
    throw error;
  }
}
