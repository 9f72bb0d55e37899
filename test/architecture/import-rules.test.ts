/** Tests the import directions of `eslint.config.mjs`. */
import { execFileSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { resolve } from 'node:path';

const root = resolve(__dirname, '../..');

interface Finding {
  ruleId: string;
  message: string;
}

/** Lints snippets with the project's configuration in a process of its own, since jest can't load ES modules. */
function lint(snippets: { filePath: string; code: string }[]): Finding[][] {
  const script = `
    import { ESLint } from 'eslint';
    import { readdirSync, readFileSync } from 'node:fs';
    const eslint = new ESLint({ overrideConfigFile: 'eslint.config.mjs' });
    const snippets = JSON.parse(readFileSync(0, 'utf8'));
    const results = await Promise.all(snippets.map(({ code, filePath }) => eslint.lintText(code, { filePath })));
    console.log(JSON.stringify(results.map(([{ messages }]) => messages)));
  `;
  const input = JSON.stringify(snippets);
  const node = ['--input-type=module', '-e', script];
  const findings = JSON.parse(
    execFileSync(process.execPath, node, { cwd: root, input, encoding: 'utf8' }),
  ) as Finding[][];
  return findings.map((one) => one.filter(({ ruleId }) => /no-restricted-/.test(ruleId)));
}

const value = (from: string) => `import * as it from '${from}';\nexport default it;\n`;

test('every folder of src has an import rule that rejects other imports, and a row of the architecture page', () => {
  const page = readFileSync(resolve(root, 'docs', 'architecture.md'), 'utf8');
  const folders = [...page.matchAll(/^\| `src\/(\S+)` \|/gm)].map(([, folder = '']) => folder);
  expect([...folders].sort()).toEqual(readdirSync(resolve(root, 'src')).sort());
  const findings = lint(
    folders.map((folder) =>
      folder.endsWith('.ts')
        ? { filePath: resolve(root, 'src', folder), code: value('./nowhere') }
        : { filePath: resolve(root, 'src', folder, 'x.ts'), code: value('../nowhere') },
    ),
  );
  expect(folders.filter((_, i) => findings[i]?.length !== 1)).toEqual([]);
});

test('language models are asked through openai, the policy server through undici', () => {
  const importing = (file: string, name: string, from: string) => ({
    filePath: resolve(root, 'src', file),
    code: `import { ${name} } from '${from}';\nexport default ${name};\n`,
  });
  const findings = lint([
    importing('rollout/x.ts', 'Agent', 'undici'),
    importing('analyst/llm/x.ts', 'OpenAI', 'openai'),
    importing('llm/x.ts', 'request', 'undici'),
    importing('llm/x.ts', 'Agent', 'undici'),
    importing('policy/x.ts', 'Pool', 'undici'),
  ]);
  expect(findings.map(({ length }) => length)).toEqual([1, 1, 1, 0, 0]);
});

test('src names no example: each is a plug-in', () => {
  const files = readdirSync(resolve(root, 'src'), { recursive: true, encoding: 'utf8' }).filter((file) =>
    file.endsWith('.ts'),
  );
  const named = files.filter((file) =>
    /\bshop\b|\bgenerators\b|'rules'|examples\/shop/i.test(readFileSync(resolve(root, 'src', file), 'utf8')),
  );
  // It names what a field of 0.2 became.
  expect(named).toEqual(['cli/removed-fields.ts']);
});
