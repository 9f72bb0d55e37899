/**
 * Programs, variables and files that workers may use for campaigns. Anyone who reaches Temporal can write the input of a workflow, so a worker uses only
 * what its operator allows in CAMPAIGN_COMMANDS and CAMPAIGN_KEY_VARIABLES; without these, what the campaign files of its home name (`campaign run` lists
 * them in the file CAMPAIGN_ALLOWED); otherwise nothing. Other processes use what the person who started them names.
 */
import { readFileSync } from 'node:fs';
import { isAbsolute, relative } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { OutsideFailure, reasonOf } from './failures';

const COMMANDS = 'CAMPAIGN_COMMANDS';
const VARIABLES = 'CAMPAIGN_KEY_VARIABLES';
export const ALLOWED_FILE = 'CAMPAIGN_ALLOWED';

/** A target's kind and the fields that decide which code runs, as in the campaign file. */
export type Program = Readonly<Record<string, unknown>> & { kind: string };

export interface Allowed {
  programs: Program[];
  /** NAME, which programs may get, or NAME=ORIGIN, whose value may be sent there. */
  variables: string[];
}

let isRestricted = false;
/** Called once by a process that takes work from Temporal. */
export const restrictToAllowed = (): void => void (isRestricted = true);

const folders = new Set<string>();
export const allowFolder = (folder: string): void => void folders.add(folder);

/** Returns what the campaign files of the home name. Reads the file each time, since campaigns may be added while workers run. */
function named(): Allowed {
  const file = process.env[ALLOWED_FILE];
  if (!file) return { programs: [], variables: [] };
  try {
    const all = Object.values(JSON.parse(readFileSync(file, 'utf8')) as Record<string, Allowed>);
    return { programs: all.flatMap(({ programs }) => programs), variables: all.flatMap(({ variables }) => variables) };
  } catch (error) {
    throw new OutsideFailure('NotAllowed', `${file} can't be read (${reasonOf(error)}); start \`campaign run\` again`);
  }
}

function allowedPrograms(text: string | undefined): readonly unknown[] {
  if (!text) return named().programs;
  try {
    const list: unknown = JSON.parse(text);
    return Array.isArray(list) ? list : [];
  } catch {
    return [];
  }
}

function refused(what: string, list: typeof COMMANDS | typeof VARIABLES, entry: string): OutsideFailure {
  const fromFiles = process.env[ALLOWED_FILE] && !process.env[list];
  const form = list === COMMANDS ? 'the JSON list in ' : '';
  const fix = fromFiles
    ? 'start the campaign with `campaign run FILE`, which allows what its file names'
    : `if you trust it, add ${entry} to ${form}the worker's ${list} (docs/machines.md)`;
  return new OutsideFailure('NotAllowed', `${what}, which this worker may not use; ${fix}`);
}

export function checkProgram(program: Program): void {
  const text = process.env[COMMANDS];
  if (!isRestricted && !text) return;
  const wanted: unknown = JSON.parse(JSON.stringify(program));
  if (allowedPrograms(text).some((one) => isDeepStrictEqual(one, wanted))) return;
  const entry = JSON.stringify(wanted);
  throw refused(`target is ${entry}`, COMMANDS, entry);
}

/** A variable that `field` names; with `url` its value is sent there, else a program gets it. */
export const variableEntry = (name: string, url?: string): string =>
  url === undefined ? name : `${name}=${new URL(url).origin}`;

function allowedVariables(): readonly string[] {
  const text = process.env[VARIABLES];
  return text ? text.split(',').map((one) => one.trim()) : named().variables;
}

export const keyVariables = (): ReadonlySet<string> =>
  new Set(allowedVariables().flatMap((entry) => (entry.includes('=') ? [entry.split('=')[0]!] : [])));

export function checkVariable(field: string, name: string, url?: string): void {
  if (!isRestricted && !process.env[VARIABLES]) return;
  const entry = variableEntry(name, url);
  if (allowedVariables().includes(entry)) return;
  throw refused(`${field} is ${name}${url === undefined ? '' : `, for ${url}`}`, VARIABLES, entry);
}

/** Throws NotAllowed unless a file or folder of a campaign is in the store. */
export function checkFile(field: string, path: string): void {
  const isInside = (folder: string) => {
    const way = relative(folder, path);
    return !isAbsolute(way) && way.split(/[\\/]/)[0] !== '..';
  };
  if (!isRestricted || [...folders].some(isInside)) return;
  const fix = 'start the campaign with `campaign run`, which puts its files there';
  throw new OutsideFailure('NotAllowed', `${field} is ${path}, which is not in the store; ${fix}`);
}
