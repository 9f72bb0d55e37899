/** The import directions of docs/architecture.md: the lint rule bites, and the page shows the rule's table. */
import { execFileSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { resolve } from 'node:path';

const root = resolve(__dirname, '../..');

interface Finding {
  ruleId: string;
  message: string;
}

/** Findings of the project's own configuration, of one process for all snippets: jest can't load it. */
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

test('the architecture page shows the table of the rule', () => {
  const page = readFileSync(resolve(root, 'docs', 'architecture.md'), 'utf8');
  const rows = [...page.matchAll(/^\| `src\/(\S+)` \|.*\| (.*?) \|$/gm)].map(([, folder = '', may = '']) => ({
    folder,
    may: may.replaceAll('`', ''),
  }));
  expect(rows.map(({ folder }) => folder).sort()).toEqual(readdirSync(resolve(root, 'src')).sort());
  // A file two folders deep that imports what nobody may: the message says what it might.
  const findings = lint(
    rows.map(({ folder }) =>
      folder.endsWith('.ts')
        ? { filePath: resolve(root, 'src', folder), code: value('./nowhere') }
        : { filePath: resolve(root, 'src', folder, 'x.ts'), code: value('../nowhere') },
    ),
  );
  const told = findings.map(([finding]) => /may import (.*): see/.exec(finding?.message ?? '')?.[1]);
  expect(rows.map(({ may }) => may)).toEqual(told);
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
