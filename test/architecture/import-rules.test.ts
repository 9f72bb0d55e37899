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
const type = (from: string) => `import type { It } from '${from}';\nexport type Its = It[];\n`;

/** File of src, import, whether it is allowed. */
const cases: [string, string, boolean][] = [
  ['domain/x.ts', value('./campaign'), true],
  ['domain/x.ts', value('zod'), true],
  ['domain/x.ts', value('../artifacts/hash'), false],
  ['domain/x.ts', type('../artifacts/store'), false],
  ['report/build/x.ts', value('../../domain/artifacts'), true],
  // Of its own folder, whatever it is called.
  ['report/build/x.ts', value('../activities/x'), true],
  ['report/build/x.ts', value('../../activities/context'), false],
  ['synthesis/llm/x.ts', value('../../sandbox/vocabulary'), true],
  ['synthesis/llm/x.ts', value('../../activities/context'), false],
  ['rollout/x.ts', value('../routing/router'), true],
  ['rollout/x.ts', value('../routing/learned'), false],
  ['analyst/llm/x.ts', value('../../environments/open'), false],
  ['activities/x.ts', value('../report/build/figures'), false],
  ['activities/report.ts', value('../report/build/report'), true],
  ['activities/report.ts', value('../cli/errors'), false],
  ['activities/x.ts', value('../analyst/analyst'), true],
  ['activities/x.ts', value('../analyst/llm/llm'), false],
  ['activities/x.ts', type('../synthesis/llm/llm'), false],
  ['activities/x.ts', type('../registry'), true],
  ['activities/x.ts', value('../registry'), false],
  ['workflows/x.ts', type('../activities/types'), true],
  ['workflows/x.ts', value('../activities/types'), false],
  ['workflows/arms/x.ts', value('node:fs'), false],
  ['registry.ts', value('./workflows/arms'), true],
  ['registry.ts', value('./workflows'), false],
  ['cli/x.ts', value('../workers/runtime'), false],
  ['workflows/x.ts', value('../plugins'), false],
  ['activities/x.ts', value('../plugins'), false],
  ['cli/x.ts', `export const it = import('../report/build/report');\n`, true],
  ['domain/x.ts', `export const it = import('../report/build/report');\n`, false],
  ['domain/x.ts', value('../../examples/shop'), false],
];

test('what a folder may import', () => {
  const findings = lint(cases.map(([file, code]) => ({ filePath: resolve(root, 'src', file), code })));
  const seen = cases.map(([file, code], n) => [file, code, findings[n]?.length === 0]);
  expect(seen).toEqual(cases);
});

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
