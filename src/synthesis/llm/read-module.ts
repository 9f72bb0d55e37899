/**
 * From a model's reply to a module. Invariants: a module that passes here loads, keeps its contract on a few seeds, and has tools, policy and
 * observations of the target's form; what it runs, runs in the sandbox; what is wrong with it is said in words that a model can act on.
 */
import type { EnvironmentDescription } from '../../domain/environment';
import type { ToolSchema } from '../../domain/messages';
import { codeIn } from '../../language-model/json';
import type { Read } from '../../language-model/answer';
import { attackLine, type Attack } from '../../sandbox/attacks';
import { openModule } from '../../sandbox/module';
import { staticFindings } from '../../sandbox/static-checks';
import { withoutTypes } from '../../sandbox/strip-types';
import { reasonOf } from '../../domain/failures';
import { SandboxError } from '../../sandbox/sandbox';
import type { SynthesizedModule } from '../synthesizer';
import { targetDefects, type Target } from './target-checks';

const LANGUAGES = ['javascript', 'js', 'mjs', 'typescript', 'ts'];
const TYPED = ['typescript', 'ts'];
/** What a model may leave out, because it is put before its code: the target's schemas, as they are. */
const TOOLS = 'const targetTools = ';
/** That line, and no beginning of a declaration of the model's own. */
const TOOLS_LINE = /^const targetTools = \{.*\};\n/;
const OWN_TOOLS = /^(?:export\s+)?(?:const|let|var)\s+targetTools\b/m;
const NOTES = /^\/\/ (?:Rationale|Attack): .*$/gm;

/** The module without what was put before it and after it: what a model wrote. */
export const ownCode = (source: string): string => source.replace(TOOLS_LINE, '').replace(NOTES, '').trim();

export const withAttacks = (source: string, attacks: readonly Attack[]): string =>
  [source.trimEnd(), ...attacks.map(attackLine)].join('\n');

export async function readModule(text: string, target: Target): Promise<Read<SynthesizedModule>> {
  const code = codeIn(text, LANGUAGES);
  if (code === undefined)
    return { defects: ['there is no fenced block of ```javascript in it; give the whole module in one such block'] };
  const rationale = rationaleIn(text);
  const defects = rationale === undefined ? ['there is no line "Rationale: ..." after the code; add it'] : [];
  const plain = await javascript(code, codeIn(text, TYPED) === code);
  if ('problem' in plain) return { defects: [...defects, plain.problem] };
  // Attacks are what was proposed against the module, and the rationale goes beside it.
  const own = plain.source.replace(NOTES, '');
  const source = withTools(own, target.description);
  defects.push(...staticFindings(own));
  if (defects.length === 0)
    defects.push(...(await inSandbox(source, (module) => targetDefects({ module, source, target }))));
  return defects.length > 0 ? { defects } : { value: { source, rationale: rationale ?? '' } };
}

/** What the last line says that begins so, in the text or among the code's comments; where it is a heading, what the next line says. */
export function rationaleIn(text: string): string | undefined {
  const lines = text.split('\n').filter((line) => line.trim() !== '');
  for (const [n, line] of [...lines.entries()].reverse()) {
    const head = /^[\s*_#>/-]*Rationale[\s*_]*:/i.exec(line)?.[0];
    if (head === undefined) continue;
    const said = [line.slice(head.length), lines[n + 1] ?? ''].map(bare).find((words) => words !== '');
    if (said !== undefined) return said;
  }
  return undefined;
}

const AROUND = new Set(['*', '_']);
const isAround = (character: string | undefined): boolean =>
  character !== undefined && (AROUND.has(character) || character.trim() === '');

/** Without emphasis and blanks around it, in a time that grows with the text: expressions for its end look at every run of them. */
function bare(words: string): string {
  let [from, to] = [0, words.length];
  while (isAround(words[from])) from += 1;
  while (to > from && isAround(words[to - 1])) to -= 1;
  return words.slice(from, to);
}

/** Types are taken out where the code has some, whatever it is called: what loads as it is stays as it is. */
async function javascript(code: string, typed: boolean): Promise<{ source: string } | { problem: string }> {
  if (!typed) {
    const broken = await inSandbox(`${TOOLS}{};\n${code}`, async (module) => {
      await module.exports();
      return [];
    });
    if (!broken.some((problem) => problem.includes('SyntaxError'))) return { source: code };
  }
  return withoutTypes(code);
}

async function inSandbox(
  source: string,
  look: (module: ReturnType<typeof openModule>) => Promise<string[]>,
): Promise<string[]> {
  const module = openModule({ source });
  try {
    return await look(module);
  } catch (error) {
    if (error instanceof SandboxError) return [`the module fails: ${reasonOf(error)}`];
    throw error;
  } finally {
    await module.close();
  }
}

/** Before the code, unless it has its own: the schemas of the target's tools that it names. */
function withTools(code: string, { tools }: EnvironmentDescription): string {
  if (OWN_TOOLS.test(code)) return code.trim();
  const named = tools.filter(({ name }) => code.includes(name));
  const schemas = Object.fromEntries(named.map((tool): [string, ToolSchema] => [tool.name, tool]));
  return `${TOOLS}${JSON.stringify(schemas)};\n${code.trim()}`;
}
