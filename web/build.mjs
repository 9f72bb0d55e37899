/**
 * Builds the page of all reports into one file, dist/page.html: script and style are in it, and a policy that lets no other script run and nothing be
 * loaded. `pageHtml` (src/report/html.ts) puts the data in.
 */
import { createHash } from 'node:crypto';
import { mkdir, writeFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { build } from 'vite';

const at = (path) => fileURLToPath(new URL(path, import.meta.url));
const { output } = await build({
  configFile: false,
  root: at('.'),
  logLevel: 'warn',
  oxc: { jsx: { runtime: 'automatic', importSource: 'preact' } },
  build: {
    write: false,
    modulePreload: false,
    cssCodeSplit: false,
    rolldownOptions: { input: at('src/main.tsx'), output: { format: 'iife' } },
  },
});
const [script] = output.flatMap((one) => (one.type === 'chunk' ? [one.code.replaceAll('</script', '<\\/script')] : []));
const [style] = output.flatMap((one) => (one.fileName.endsWith('.css') ? [String(one.source)] : []));
const hash = `'sha256-${createHash('sha256').update(script).digest('base64')}'`;
// Plots bring a style sheet of their own: no text of a model or a user is ever parsed as markup, so none can bring another.
const policy = `default-src 'none'; script-src ${hash}; style-src 'unsafe-inline'; connect-src 'self'; base-uri 'none'; form-action 'none'`;
await mkdir(at('../dist'), { recursive: true });
await writeFile(
  at('../dist/page.html'),
  `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="${policy}"><meta name="color-scheme" content="light dark">
<title>TITLE</title><style>${style}</style></head><body><div id="app"></div>
<script type="application/json" id="data">DATA</script><script>${script}</script></body></html>
`,
);
