/** CSV as spreadsheets write it (RFC 4180; comma or semicolon). Invariant: a row's line is that of its first character. */
export function csvRows(text: string): { line: number; value: Record<string, unknown> | string }[] {
  const separator = /^[^\n,]*;/.test(text) ? ';' : ',';
  const [head, ...rows] = recordsOf(text, separator).filter(({ cells }) => cells.some((cell) => cell.trim() !== ''));
  const names = head?.cells.map((name) => name.trim().toLowerCase()) ?? [];
  // Marks of where failures begin have neither.
  const marks = names.includes('message') && !names.includes('capability') && !names.includes('label');
  const missing = marks ? [] : ['capability', 'label'].filter((name) => !names.includes(name));
  if (!names.includes('conversation') && !names.includes('rollout')) missing.unshift('conversation');
  if (missing.length > 0)
    return [
      {
        line: head?.line ?? 1,
        value: `has no column ${missing.join(', ')}; begin with a line such as conversation,capability,label,message`,
      },
    ];
  return rows.map(({ line, cells }) => ({
    line,
    value: Object.fromEntries(names.map((name, n): [string, unknown] => [name, cells[n] ?? ''])),
  }));
}

function recordsOf(text: string, separator: string): { line: number; cells: string[] }[] {
  const records: { line: number; cells: string[] }[] = [];
  let [cell, line, start, quoted] = ['', 1, 1, false];
  let cells: string[] = [];
  const end = () => {
    records.push({ line: start, cells: [...cells, cell] });
    [cells, cell, start] = [[], '', line];
  };
  for (let n = 0; n < text.length; n++) {
    const character = text[n] ?? '';
    if (character === '\n') line++;
    if (quoted) {
      if (character !== '"') cell += character;
      else if (text[n + 1] === '"') {
        cell += '"';
        n++;
      } else quoted = false;
    } else if (character === '"' && cell === '') quoted = true;
    else if (character === separator) [cells, cell] = [[...cells, cell], ''];
    else if (character === '\n') end();
    else if (character !== '\r') cell += character;
  }
  if (cell !== '' || cells.length > 0) end();
  return records;
}
