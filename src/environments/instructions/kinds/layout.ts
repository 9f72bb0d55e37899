/** Kinds about how a text is laid out, and what stands around it. */
import { bulletsOf, isFinished, linesOf, numbersOf, paragraphsOf, sentencesOf, wordsOf } from '../text';
import { plainKind, spelled, type InstructionKind } from './kind';

const OPENING = ['"', '“'];
const CLOSING = ['"', '”'];
const TITLE = /^<<([^<>\n]+)>>/;
const POSTSCRIPT = /^p\.\s?s\.?[:,]?\s*(.+)/i;

export const layoutKinds: InstructionKind[] = [
  {
    name: 'sentences',
    weight: 4,
    draw: ({ rng }) => ({ sentences: rng.pick([1, 2, 2, 3, 3]) }),
    say: ({ sentences = 0 }) => {
      const many = `${spelled(sentences)} sentence${sentences === 1 ? '' : 's'}`;
      return [`Use exactly ${many}.`, `It must have exactly ${many}.`];
    },
    // One that is cut off is a sentence, but no whole one.
    holds: (text, { sentences = 0 }) => sentencesOf(text).length === sentences && isFinished(text),
  },
  {
    name: 'paragraphs',
    weight: 2,
    draw: () => ({ paragraphs: 2 }),
    say: () => ['Write exactly two paragraphs with an empty line between them.', 'Use exactly two short paragraphs.'],
    holds: (text, { paragraphs = 0 }) => paragraphsOf(text).length === paragraphs,
  },
  {
    name: 'bullets',
    weight: 4,
    draw: ({ rng }) => ({ bullets: rng.pick([2, 3, 3, 4]) }),
    say: ({ bullets = 0 }) => [
      `Use exactly ${spelled(bullets)} bullet points.`,
      `It must have exactly ${spelled(bullets)} bullet points, each on a line that begins with "-".`,
    ],
    holds: (text, { bullets = 0 }) => bulletsOf(text).length === bullets,
  },
  {
    name: 'numbered_list',
    weight: 3,
    draw: ({ rng }) => ({ numbered: rng.pick([2, 3, 3, 4]) }),
    say: ({ numbered = 0 }) => [
      `Write it as a numbered list of exactly ${spelled(numbered)} items.`,
      `Use a list of exactly ${spelled(numbered)} items, numbered from 1 to ${numbered}.`,
    ],
    holds: (text, { numbered = 0 }) =>
      numbersOf(text).join() === Array.from({ length: numbered }, (_, n) => n + 1).join(),
  },
  plainKind({
    name: 'title',
    weight: 5,
    say: [
      'Start with a title in double angle brackets, such as <<title>>.',
      'Put a title in double angle brackets, as in <<title>>, before the text.',
    ],
    holds: (text) => wordsOf(TITLE.exec(text.trim())?.[1] ?? '').length > 0 && linesOf(text).join(' ').length > 0,
  }),
  plainKind({
    name: 'heading',
    weight: 2,
    say: ['Begin with a heading line that starts with "#".', 'Put a heading above it: a line that starts with "#".'],
    holds: (text) => /^#{1,6}[^\S\n]*[^\s#]/.test(text.trim()) && linesOf(text).length > 1,
  }),
  plainKind({
    name: 'quoted',
    weight: 1,
    say: ['Put your whole answer in double quotation marks.', 'Wrap all of it in double quotation marks.'],
    holds: (text) => {
      const [first = '', last = ''] = [text.trim().at(0), text.trim().at(-1)];
      return wordsOf(text).length > 0 && OPENING.includes(first) && CLOSING.includes(last);
    },
  }),
  plainKind({
    name: 'postscript',
    weight: 1,
    say: ['Add a postscript at the end that begins with "P.S."', 'Close with a last line that begins with "P.S."'],
    holds: (text) => wordsOf(POSTSCRIPT.exec(linesOf(text).at(-1) ?? '')?.[1] ?? '').length > 0,
  }),
];
