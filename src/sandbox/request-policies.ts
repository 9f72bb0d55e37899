/** Policies for environments without tools, where all that counts is a text. Invariant: each says the request's own words and no other. */
import { heardFrom, say, type AuditPolicy, type Limits } from './audit-policy';

/** Of one message. */
const MOST_SAID = 20_000;

/** As they are, one by one in sentences of their own, backwards, and again and again. */
export function requestPolicies(limits: Limits): AuditPolicy[] {
  const written = (name: string, text: (words: string[]) => string): AuditPolicy => ({
    name,
    limits,
    on: ({ start }) => {
      const answer = say(
        text(
          heardFrom(start, 'user')
            .join(' ')
            .match(/[\p{L}\p{N}]+/gu) ?? [],
        ).slice(0, MOST_SAID),
      );
      return [answer, answer];
    },
  });
  return [
    written("the request's own words", (words) => words.join(' ')),
    written("the request's own words, a sentence each", (words) => words.map((word) => `${word}.`).join(' ')),
    written("the request's own words, backwards", (words) => [...words].reverse().join(' ')),
    written("the request's own words, five times", (words) =>
      Array.from({ length: 5 }, () => words.join(' ')).join('. '),
    ),
  ];
}
