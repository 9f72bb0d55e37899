/**
 * A scripted policy that solves every task of `instructions`: the proof that its instructions don't contradict each other. It reads what the task
 * demands, never how that is checked, and its texts have at most about fifty words.
 */
import { leastWords } from '../../src/environments/instructions/instructions';
import { type Demands, merged } from '../../src/environments/instructions/kinds';
import type { InstructionTask } from '../../src/environments/instructions/tasks';
import { plainWords, type Topic } from '../../src/environments/instructions/topics';

/** Clauses about a topic, `{}`, or a word that belongs to it; some without each word or letter that may be unwanted. */
const ABOUT = [
  'we all like {}',
  'my sister often reads about {}',
  'here you learn more about {}',
  'some people dream of {}',
  'few things match {}',
];
const OF = [
  'think of {}',
  'mention {} too',
  'some think first of {}',
  'others mention {} at once',
  'then comes {} as well',
  'a good part has to do with {}',
  'you may hear a lot about {} there',
  'i saw {} last summer',
  'nothing beats {} on a warm day',
];

/** What the task's instructions up to the user's message `turn` ask of the answer. */
function demandsOf({ turns }: InstructionTask, turn: number): Demands {
  return merged(turns.slice(0, turn + 1).flatMap(({ instructions }) => instructions.map((i) => i.demands)));
}

/** The answer to the user's message `turn`. */
export function writtenAnswer(task: InstructionTask, turn: number): string {
  const demands = demandsOf(task, turn);
  const flags = new Set(demands.flags);
  const clauses = clausesFor({ topic: task.topic, demands, skip: turn });
  const { sentences, bullets, numbered } = demands;
  const exact = sentences ?? bullets ?? numbered;
  const fixed = plainWords([demands.start, demands.end].join(' ')).length;
  const extra = [...(demands.include ?? []), ...(demands.twice ? [demands.twice, demands.twice] : [])];
  const words = (count: number) => plainWords(clauses.slice(0, count).join(' ')).length + extra.length + fixed;
  const least = Math.max(demands.least ?? 0, leastWords(demands));
  let count = exact ?? (demands.most === undefined ? 2 : 1);
  while (exact === undefined && words(count) < least) count++;
  const parts = clauses.slice(0, count);
  // One sentence may have to take what would have been several.
  for (let n = count; exact !== undefined && plainWords(parts.join(' ')).length + extra.length < least; n++)
    parts[n % count] += ` ${clauses[n]}`;
  return decorated(laidOut(finished(parts, extra, demands, flags), demands), task.topic, flags);
}

/** Clauses without what is unwanted, the topic's own first; another order for another turn. */
function clausesFor(o: { topic: Topic; demands: Demands; skip: number }): string[] {
  const { topic, demands, skip } = o;
  const allowed = (text: string) =>
    !(demands.letter && text.includes(demands.letter)) && !(demands.avoid && plainWords(text).includes(demands.avoid));
  const related = topic.related.filter((word) => allowed(word));
  const about = ABOUT.filter(allowed).map((clause) => clause.replace('{}', topic.name));
  const turned = [...related.slice(3 * skip), ...related.slice(0, 3 * skip)];
  const of = OF.filter(allowed);
  const others = turned.map((word, n) => (of[(n + 2 * skip) % of.length] as string).replace('{}', word));
  const [first = '', ...rest] = [...about.slice(skip), ...about.slice(0, skip)].filter(allowed);
  const [shortest = ''] = [first, ...rest].sort(byLength);
  // Every other one, so that the next turn has others.
  if (demands.most !== undefined) return [shortest, ...others.sort(byLength).filter((_, n) => n % 2 === skip)];
  return [first, ...others, ...rest].filter(Boolean);
}

const byLength = (a: string, b: string): number => plainWords(a).length - plainWords(b).length;

/** Sentences of the clauses, with what has to stand in them. */
function finished(
  parts: string[],
  extra: string[],
  { start, end, capitals = 0 }: Demands,
  flags: Set<string>,
): string[] {
  const loud = (text: string) =>
    text
      .split(' ')
      .map((word, n, all) => (capitals > 0 && n >= all.length - capitals - 1 ? word.toUpperCase() : word))
      .join(' ');
  return parts.map((part, n) => {
    const [isFirst, isLast] = [n === 0, n === parts.length - 1];
    const pieces = [
      isFirst && start,
      isFirst ? loud(part) : part,
      isLast && extra.join(' '),
      isFirst && flags.has('with_number') && '2020',
      isFirst && flags.has('parentheses') && '(so nice)',
      isFirst && flags.has('placeholder') && '[name]',
      isFirst && flags.has('bold') && '**too**',
      isLast && end,
    ];
    const text = pieces.filter(Boolean).join(' ');
    const asks = isLast ? flags.has('question') || flags.has('end_question') : false;
    return `${text[0]?.toUpperCase()}${text.slice(1)}${asks ? '?' : flags.has('exclamation') ? '!' : '.'}`;
  });
}

function laidOut(sentences: string[], { bullets, numbered, paragraphs }: Demands): string {
  if (bullets !== undefined) return sentences.map((sentence) => `- ${sentence}`).join('\n');
  if (numbered !== undefined) return sentences.map((sentence, n) => `${n + 1}. ${sentence}`).join('\n');
  if (paragraphs === undefined) return sentences.join(' ');
  const [first = '', ...rest] = sentences;
  return `${first}\n\n${rest.join(' ')}`;
}

function decorated(text: string, topic: Topic, flags: Set<string>): string {
  const name = topic.name.replace(/^(?:the|a|an) /, '');
  const whole = [
    flags.has('title') && `<<${name}>>\n`,
    flags.has('heading') && `# ${name}\n`,
    flags.has('quoted') ? `"${text}"` : text,
    flags.has('postscript') && '\nP.S. Come soon.',
  ];
  const written = whole.filter(Boolean).join('');
  if (flags.has('lowercase')) return written.toLowerCase();
  return flags.has('uppercase') ? written.toUpperCase() : written;
}
