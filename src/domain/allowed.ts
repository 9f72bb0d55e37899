/**
 * What the operator of a worker lets campaign files name: commands that it runs, and variables whose values it hands on. Without a list everything,
 * as on a machine of one's own.
 */
import { OutsideFailure } from './failures';

/** Commands that may run, word by word, between semicolons. */
const COMMANDS = 'CAMPAIGN_COMMANDS';
/** Variables that may be named, between commas. */
const VARIABLES = 'CAMPAIGN_KEY_VARIABLES';

function check(what: string, { word, list, separator }: { word: string; list: string; separator: string }): void {
  const allowed = process.env[list]?.split(separator).map((one) => one.trim().split(/\s+/).join('\0'));
  if (!process.env[list] || allowed?.includes(word)) return;
  throw new OutsideFailure('NotAllowed', `${what}, which this worker's operator does not allow; add it to ${list}`);
}

/** Throws NotAllowed. */
export const checkCommand = (command: readonly string[]): void =>
  check(`the target's command is ${command.join(' ')}`, { word: command.join('\0'), list: COMMANDS, separator: ';' });

/** Of a field of the campaign file that names a variable. Throws NotAllowed. */
export const checkVariable = (field: string, name: string): void =>
  check(`${field} is ${name}`, { word: name, list: VARIABLES, separator: ',' });
