/** Gives standard output so many columns; undefined is no terminal. Suites that share a process share its stream. @returns what takes it back. */
export function setColumns(columns: number | undefined): () => void {
  const before = process.stdout.columns;
  Object.assign(process.stdout, { columns });
  return () => void Object.assign(process.stdout, { columns: before });
}
