/** Progress on the terminal. */
const begun = Date.now();

/** One line, with the minutes since the beginning. */
export function say(text: string): void {
  const minutes = ((Date.now() - begun) / 60_000).toFixed(1).padStart(6);
  process.stderr.write(`${minutes} min  ${text}\n`);
}
