/** Comments, messages and docs are plain English (CONTRIBUTING.md): no fragments as openings, and none of the words below. */
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';

/** The tracked files that are checked. The bytes of modules are recorded: a model wrote them, or stored campaigns name their hash. */
const CHECKED = ['src', 'web/src', 'trainer', 'bridges', 'examples', 'bench', 'docs', 'README.md', 'CONTRIBUTING.md'];
const RECORDED = [':!examples/triage/modules', ':!examples/shop/generators/module'];
/** Files whose strings are prompts with recorded replies, or parts of modules. */
const FIXED = /^(src.domain.transcript|src.synthesis.llm.feedback|examples.shop.generators.capabilities)\.ts$/;

const OPENING = /^\s*(?:\/\/|\/\*\*?|\*|#|[rf]?""")\s*((?:Of|By|What|Who|Whom|Where|Whether|Whoever)\b)/;
const WORD = /\b(?:told|anew|mend(?:s|ed)?|whoever|goes on|is away)\b/i;

/** Comments and strings. A regular expression is matched as a whole, because it may hold quotes. */
const TYPESCRIPT =
  /\/\/.*|\/\*[^]*?\*\/|'(?:\\.|[^'\\\n])*'|"(?:\\.|[^"\\\n])*"|`(?:\\[^]|[^`\\])*`|(?<=[(,=:!&|?;{}[]\s*)\/(?:\\.|\[(?:\\.|[^\]\\\n])*\]|[^/\\[\n])+\/|(?<=\w>)[^<>{}]+(?=<\/)/g;
const PYTHON = /#.*|"""[^]*?"""|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'/g;

const blank = (text: string): string => text.replace(/[^\n]/g, ' ');

/** Blanks quotations and inserted values of a comment, a string or a document. */
function withoutQuotations(text: string, file: string): string {
  if (file.endsWith('.md')) return text.replace(/```[^]*?```|`[^`]*`|"[^"\n]*"|“[^”]*”/g, blank);
  if (/^(?:#|\/[/*]|""")/.test(text)) return text.replace(/`[^`]*`|(?<!")"[^"\n]+"(?!")/g, blank);
  return FIXED.test(file) ? '' : text.replace(/\$?\{[^{}]*\}/g, blank);
}

/** Returns `file:line: word` of each violation in a file. */
function violations(file: string, source: string): string[] {
  const isDocument = file.endsWith('.md');
  const parts = isDocument ? [{ 0: source, index: 0 }] : source.matchAll(file.endsWith('.py') ? PYTHON : TYPESCRIPT);
  return [...parts].flatMap(({ 0: part, index }) =>
    withoutQuotations(part, file)
      .split('\n')
      .flatMap((line, n) => {
        const word = (isDocument ? undefined : OPENING.exec(line)?.[1]) ?? WORD.exec(line)?.[0];
        return word === undefined ? [] : [`${file}:${source.slice(0, index).split('\n').length + n}: ${word}`];
      }),
  );
}

test('comments, strings and docs are written in plain English', () => {
  const root = join(__dirname, '../..');
  const files = execFileSync('git', ['ls-files', ...CHECKED, ...RECORDED], { cwd: root, encoding: 'utf8' }).split('\n');
  const found = files
    .filter((file) => /\.(tsx?|m?js|py|md)$/.test(file))
    .flatMap((file) => violations(file, readFileSync(join(root, file), 'utf8')));
  expect(found).toEqual([]);
});

test('the check finds openings and words, and leaves code and quotations alone', () => {
  const source =
    "/** Of a file. */\nconst told = /'/.test(`it ${told} goes on`);\n// Returns `told`.\nthrow 'Whoever';";
  expect(violations('a.ts', source)).toEqual(['a.ts:1: Of', 'a.ts:2: goes on', 'a.ts:4: Whoever']);
  expect(violations('a.py', '"""By folder."""\ntold = f"{told}"  # anew')).toEqual(['a.py:1: By', 'a.py:2: anew']);
  expect(violations('a.md', '# What\n\n`told` "anew"\nmended')).toEqual(['a.md:4: mended']);
});
