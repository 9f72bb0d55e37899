/**
 * No text of a test task gets into a prompt or a synthesized environment, and no identifier of the target's records
 * into a module. Modules are given hashes only; a generated module computes the same ones.
 */
import { setImmediate } from 'node:timers/promises';
import type { EnvironmentDescription } from '../domain/environment';
import type { Message } from '../domain/messages';
import type { ScoredRollout } from '../domain/rollout';
import { hash } from '../domain/seeds';
import { byTask } from '../domain/transcript';
import { type EnvironmentModule, play } from './module';
import { unlessItFails } from './sandbox';

const { imul } = Math;

export const normalised = (text: string): string => (text.toLowerCase().match(/[\p{L}\p{N}]+/gu) ?? []).join(' ');

/** 53 bits (hex) of the normalised text, two hashes side by side over the hashes of its words, and how many words it has. Not for secrets. */
export function messageHash(text: string): string {
  const words = wordHashes(text);
  let [a, b] = [0, 0];
  for (const word of words) [a, b] = [withWord(a, word), withWordToo(b, word)];
  return `${bits(a, b).toString(16)}.${words.length}`;
}

function wordsOf(hash: string): number {
  const words = Number(hash.split('.')[1]);
  if (Number.isInteger(words)) return words;
  throw new RangeError(`"${hash}" is no messageHash(): it does not say of how many words`);
}

/** Shorter messages occur by chance in code and in answers of tools. */
const FEWEST_WORDS = 5;
export const isDistinctive = (hash: string): boolean => wordsOf(hash) >= FEWEST_WORDS;

/** Replaces escaped line ends in a module's literals by spaces, so that their letters do not become part of the next word. */
export const spelledOut = (source: string): string => source.replace(/\\[nrt]/g, ' ');

/** Returns a test for texts in which a run of words equals one of the messages with these hashes. No run is longer than the longest message. */
export function forbiddenIn(hashes: readonly string[]): (text: string) => boolean {
  const forbidden = new Set(hashes.map((hash) => Number.parseInt(hash, 16)));
  const longest = Math.max(0, ...hashes.map(wordsOf));
  // A long message has millions of runs; the first 16 bits exclude nearly all of them.
  const known = new Uint8Array(2 ** 16);
  for (const hash of forbidden) known[Math.floor(hash / 2 ** 37)] = 1;
  return (text) => {
    const words = forbidden.size === 0 ? [] : wordHashes(text);
    for (let from = 0; from < words.length; from += 1)
      for (let to = from, a = 0, b = 0; to < Math.min(words.length, from + longest); to += 1) {
        a = withWord(a, words[to]!);
        b = withWordToo(b, words[to]!);
        if (known[a >>> 16] && forbidden.has(bits(a, b))) return true;
      }
    return false;
  };
}

const wordHashes = (text: string): number[] => normalised(text).split(' ').map(wordHash);
const withWord = (a: number, word: number): number => imul(a ^ word, 0x01000193);
const withWordToo = (b: number, word: number): number => imul(b ^ word, 0x85ebca6b);
const bits = (a: number, b: number): number => (a >>> 0) * 2 ** 21 + (b >>> 11);

function wordHash(word: string): number {
  const h = hash(word);
  return h ^ (h >>> 15);
}

/** The rollouts that a prompt may show: no user message of theirs holds the text of a test task. In the order of tasks. */
export async function showable(
  rollouts: readonly ScoredRollout[],
  forbidden: readonly string[],
): Promise<ScoredRollout[]> {
  const isForbidden = forbiddenIn(forbidden);
  const shown: ScoredRollout[] = [];
  for (const rollout of rollouts) {
    if (!rollout.messages.some(({ role, content }) => role === 'user' && isForbidden(content))) shown.push(rollout);
    // Yields to other steps' heartbeats and timers, since there are thousands of rollouts.
    await setImmediate();
  }
  return shown.sort(byTask);
}

/**
 * The largest share of a module's instances that may hold a text of the target. Where a target's language is small, up to a fifth do in modules that
 * talk like its users.
 */
export const LEAKING_SHARE = 1 / 3;

interface Leak {
  seed: number;
  who: 'a user' | 'a tool';
}

/** `forbidden`: messageHash() of the test tasks' texts. The first leak of each seed; the policy is the target's own. */
export async function leaksOf(
  module: EnvironmentModule,
  { seeds, forbidden }: { seeds: readonly number[]; forbidden: readonly string[] },
): Promise<Leak[]> {
  if (forbidden.length === 0) return [];
  const [isForbidden, isTelling] = [forbiddenIn(forbidden), forbiddenIn(forbidden.filter(isDistinctive))];
  const leaks: Leak[] = [];
  for (const seed of seeds) {
    const made = await unlessItFails(module.make(seed));
    if (made === undefined) continue;
    const start = (await unlessItFails(module.start(made))) ?? [];
    const solved = await unlessItFails(module.solve(seed).then((script) => play(module, { seed, script })));
    const saidBy = (role: Message['role']) =>
      (solved?.messages ?? start).flatMap((one) => (one.role === role ? [one.content] : []));
    const first = start.flatMap((one) => (one.role === 'user' ? [one.content] : [])).join(' ');
    const who = [first, ...saidBy('user')].some(isForbidden) ? 'a user' : saidBy('tool').some(isTelling) && 'a tool';
    if (who) leaks.push({ seed, who });
  }
  return leaks;
}

/** Digits of an identifier that belongs to one record; shorter ones, numbers, years and dates may coincide in two worlds. */
const DIGITS = 4;

/** Words that name a record: `W5918442`, `credit_card_7815826`, `78784`. */
export const identifiersIn = (text: string): string[] =>
  // Each expression looks at a character once, whatever the text: from the word in which the first digit is to the last letter or digit.
  [...new Set(text.match(/[A-Za-z0-9_-]+/g) ?? [])]
    .map((run) => run.replace(/^[^\d]*-/, '').replace(/(?<![-_])[-_]+$/, ''))
    .filter((word) => (word.match(/\d/g)?.length ?? 0) >= DIGITS)
    .filter((word) => !/^\d{1,4}$/.test(word) && !/^\d{4}-\d\d/.test(word));

/** Returns identifiers of the shown trajectories that occur in the module, except examples of the policy and the tools. */
export function copiedIdentifiers(
  source: string,
  { shown, target }: { shown: string; target: EnvironmentDescription },
) {
  const allowed = new Set(identifiersIn(`${target.policy} ${JSON.stringify(target.tools)}`));
  const own = new Set(identifiersIn(source));
  return identifiersIn(shown).filter((word) => own.has(word) && !allowed.has(word));
}

/** Returns true if the module's source contains the text of a test task, whichever seed would show it. */
export const quotesTask = (source: string, forbidden: readonly string[]): boolean =>
  forbiddenIn(forbidden.filter(isDistinctive))(spelledOut(source));
