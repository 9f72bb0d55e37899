/** Reads a module's source from the files of a folder, and checks it before it runs. */
import { readdir } from 'node:fs/promises';
import { checkFile } from '../domain/allowed';
import type { EnvironmentDescription } from '../domain/environment';
import { OutsideFailure, reasonOf } from '../domain/failures';
import type { ToolSchema } from '../domain/messages';

export async function moduleFiles(folder: string, field?: string): Promise<string[]> {
  checkFile(field ?? 'modules', folder);
  const wrong = (problem: string) =>
    new OutsideFailure(
      'BadInput',
      `${field ? `${field}: ` : ''}${folder} ${problem}; name a folder of environment modules (docs/synthesis.md)`,
    );
  const names = await readdir(folder).catch((error: unknown) => {
    throw wrong(`cannot be read (${reasonOf(error)})`);
  });
  const files = names.filter((name) => name.endsWith('.js')).sort();
  if (files.length === 0) throw wrong('holds no .js file');
  return files;
}

const DECLARES_TOOLS = /^(?:export\s+)?(?:const|let|var)\s+targetTools\b/m;

/** Declares `targetTools` in the first line: the schemas of the target's tools that the code names. Code with a declaration of its own stays as it is. */
export function withTools(code: string, { tools }: EnvironmentDescription): string {
  if (DECLARES_TOOLS.test(code)) return code.trim();
  const named = tools.filter(({ name }) => code.includes(name));
  const schemas = Object.fromEntries(named.map((tool): [string, ToolSchema] => [tool.name, tool]));
  return `const targetTools = ${JSON.stringify(schemas)};\n${code.trim()}`;
}

/** Forbidden constructs as written in code, without spaces: the words alone may occur in a policy's text ("the return process. Give the Date (ISO)"). */
const FORBIDDEN: readonly [construct: RegExp, name: string, fix: string][] = [
  [/^\s*import\s+(?:['"]|[\w*{][^\n]*\bfrom\s*['"])/, 'import', 'a module has no imports: write what you need into it'],
  [/\bimport\(/, 'import()', 'a module has no imports: write what you need into it'],
  [/\brequire\(/, 'require', 'a module has no imports: write what you need into it'],
  [/\bfetch\(/, 'fetch', 'there is no network: draw what you need from the seed'],
  [/\bprocess\.[a-z]/, 'process', 'there is no host to ask: leave it out'],
  [/\bMath\s*\.\s*random\b/, 'Math.random', 'draw everything from the seed, by a generator of your own'],
  [
    /\bnew\s+Date[(;]|\bDate(?:\.[a-zU]|\((?!s\)))/,
    'Date',
    'there is no clock: write dates as text and count days yourself',
  ],
  [/\bset(?:Timeout|Interval)\(/, 'a timer', 'nothing runs later: answer at once'],
  [/\beval\(|\bnew\s+Function\(/, 'eval', 'write the code itself'],
];

export function staticFindings(source: string): string[] {
  const lines = source.split('\n');
  return FORBIDDEN.flatMap(([construct, name, fix]) => {
    const at = lines.findIndex((line) => construct.test(line));
    return at < 0 ? [] : [`line ${at + 1} uses ${name}: ${fix}`];
  });
}
