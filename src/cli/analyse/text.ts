/** An analysis as short text on the terminal: the beginning of each section. */
import { clip, fittingWidth } from '../../report/terminal';
import type { Analysis, Statement } from './result';

const MOST_STATEMENTS = 6;
const MOST_NAMES = 8;

export function analysisText({ sections }: Pick<Analysis, 'sections'>, columns?: number): string {
  const width = fittingWidth(columns);
  const blocks = sections.map(({ title, statements }) => {
    const more = statements.length - MOST_STATEMENTS;
    const lines = statements.slice(0, MOST_STATEMENTS).map(withConversations);
    if (more > 0) lines.push(`${more} more on the page`);
    return [title, ...lines.flatMap((line) => clip(`- ${line}`, width, 4))].join('\n');
  });
  return blocks.join('\n\n');
}

function withConversations({ text, conversations = [] }: Statement): string {
  if (conversations.length === 0) return text;
  const more = conversations.length - MOST_NAMES;
  return `${text} (${conversations.slice(0, MOST_NAMES).join(', ')}${more > 0 ? ` and ${more} more` : ''})`;
}
