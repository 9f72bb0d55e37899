/** Long lines on a terminal. Invariants: no word is cut, since paths and commands are copied from there; without a terminal nothing is folded. */

/** Of a line that stands under its first one, where nothing else is said. */
const INDENT = 2;

/** By words; further lines are indented. Where several spaces follow one another, they and what is around them stay together. */
export function foldLine(
  line: string,
  { columns = Infinity, indent = INDENT }: { columns?: number | undefined; indent?: number },
): string {
  const [first = '', ...words] = line.split(/(?<=\S) (?=\S)/);
  const lines = [first];
  for (const word of words) {
    const longer = `${lines.at(-1)} ${word}`;
    if (longer.length <= columns) lines[lines.length - 1] = longer;
    else lines.push(' '.repeat(indent) + word);
  }
  return lines.join('\n');
}

/** Every line but those of tables, which have columns of their own. */
export const foldText = (text: string, columns: number | undefined): string =>
  text
    .split('\n')
    .map((line) => (/\S {2,}\S/.test(line) ? line : foldLine(line, { columns, indent: INDENT + line.search(/\S|$/) })))
    .join('\n');
