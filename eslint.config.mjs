import js from '@eslint/js';
import { readdirSync } from 'node:fs';
import tseslint from 'typescript-eslint';

/**
 * Lists what each folder of src may import besides itself: a folder, one file of it, or only its types (`type`). Folders that run a part of
 * the method (activities, workflows, report) import its interface, never one of its kinds.
 */
const mayImport = {
  domain: [],
  store: ['domain'],
  policy: ['domain', 'store'],
  llm: ['domain', 'store', 'policy/wire'],
  sandbox: ['domain', 'store'],
  environments: [
    'domain',
    'store',
    'llm',
    'sandbox',
    'policy/wire',
    'gateway/answer',
    'gateway/errors',
    'gateway/request',
    'gateway/respond',
  ],
  routing: ['domain', 'store', 'policy'],
  rollout: ['domain', 'store', 'metrics', 'policy', 'routing/router'],
  conversations: ['domain', 'store/hash'],
  analyst: ['domain', 'store', 'llm'],
  synthesis: ['domain', 'store', 'llm', 'sandbox'],
  report: ['domain', 'store', 'rollout', 'routing/router', 'terminal'],
  view: ['domain', 'store', 'gateway/listen', 'report', 'rollout', 'terminal', 'training/markers'],
  arms: ['domain'],
  workflows: ['arms', 'domain', 'type activities'],
  temporal: ['store', 'domain'],
  training: ['domain', 'store', 'metrics', 'policy', 'rollout'],
  activities: [
    'checks',
    'domain',
    'store',
    'conversations',
    'policy',
    'sandbox',
    'environments',
    'rollout',
    'llm',
    'metrics',
    'analyst/analyst',
    'analyst/steps',
    'synthesis/synthesizer',
    'routing/router',
    'training',
    'type registry',
  ],
  checks: ['domain', 'conversations', 'sandbox', 'type registry'],
  gateway: ['domain', 'store', 'policy', 'rollout', 'routing/router', 'report'],
  workers: [
    'domain/allowed',
    'domain/failures',
    'domain/secrets',
    'domain/work',
    'store',
    'plugins',
    'policy',
    'type registry',
    'temporal',
    'training',
    'activities',
  ],
  cli: [
    'checks',
    'domain',
    'store',
    'conversations',
    'llm',
    'sandbox',
    'environments',
    'plugins',
    'report',
    'registry',
    'policy',
    'gateway',
    'view',
    'analyst/given',
    'analyst/analyst',
    'analyst/steps',
    'temporal',
    'workers/versions',
    'workers/worker',
    'workflows/messages',
    'terminal',
  ],
};
const unruled = readdirSync(`${import.meta.dirname}/src`, { withFileTypes: true })
  .filter((entry) => entry.isDirectory() && !(entry.name in mayImport))
  .map(({ name }) => name);
if (unruled.length > 0)
  throw new Error(`mayImport in eslint.config.mjs has no entry for src/${unruled.join(', src/')}`);

const pluginsMayImport = ['store', 'domain', 'type environments/kinds', 'type plugin', 'registry'];
const pluginMayImport = [
  'domain',
  'analyst/analyst',
  'environments/json-schema',
  'type environments/kinds',
  'routing/router',
  'sandbox/vocabulary',
  'synthesis/synthesizer',
];
const registryMayImport = ['analyst', 'synthesis', 'routing', 'environments', 'arms'];

/** Other folders ask neither a language model nor a policy server by themselves. */
const httpClients = {
  regex: '^(undici|openai)(/|$)',
  message: 'src/llm asks language models through openai, src/policy the policy server through undici.',
};
/** The client of language models takes the connections of undici, and no more. */
const connectionsOnly = {
  regex: '^undici(/|$)',
  allowImportNamePattern: '^(Agent|fetch|Response)$',
  message: httpClients.message,
};
const clientPatterns = { policy: [], llm: [connectionsOnly] };

const importRule = (patterns, clients = [httpClients]) => ({
  '@typescript-eslint/no-restricted-imports': ['error', { patterns: [...patterns, ...clients] }],
});

/** For imports that begin with `up`: the way from a file to src. */
function importPatterns(folder, allowed, up) {
  const types = allowed.flatMap((entry) => (entry.startsWith('type ') ? [entry.slice('type '.length)] : []));
  const known = allowed.map((entry) => entry.replace('type ', ''));
  const from = `^${up.replaceAll('.', '\\.')}`;
  const message = `src/${folder} may import ${allowed.join(', ') || 'nothing else'}: see mayImport in eslint.config.mjs.`;
  const outside = { regex: `${from}(?!(?:${known.join('|')})(?:/|$))`, message };
  if (types.length === 0) return [outside];
  return [outside, { regex: `${from}(?:${types.join('|')})(?:/|$)`, allowTypeImports: true, message }];
}

// Workflow code runs in a deterministic sandbox.
const nodeAsTypes = {
  group: ['node:*'],
  allowTypeImports: true,
  message: 'Workflows import node modules as types only.',
};

const DEEPEST = 5;
const importRules = Object.entries(mayImport).flatMap(([folder, allowed]) =>
  Array.from({ length: DEEPEST }, (_, n) => ({
    files: [`src/${folder}/${'*/'.repeat(n)}*.{ts,js}`],
    rules: importRule(
      [...importPatterns(folder, allowed, '../'.repeat(n + 1)), ...(folder === 'workflows' ? [nodeAsTypes] : [])],
      clientPatterns[folder],
    ),
  })),
);

export default tseslint.config(
  {
    ignores: ['dist', 'node_modules', '.venv*', '.campaigns', 'coverage', 'jest.config.js', 'examples/triage/modules'],
  },
  js.configs.recommended,
  { files: ['web/build.mjs'], languageOptions: { globals: { URL: 'readonly' } } },
  ...tseslint.configs.recommended,
  ...importRules,
  {
    // The one step that builds the report; what a step decides is judged by domain.
    files: ['src/activities/report.ts'],
    rules: importRule(importPatterns('activities/report.ts', [...mayImport.activities, 'report'], '../')),
  },
  { files: ['src/plugins.ts'], rules: importRule(importPatterns('plugins.ts', pluginsMayImport, './')) },
  { files: ['src/plugin.ts'], rules: importRule(importPatterns('plugin.ts', pluginMayImport, './')) },
  {
    files: ['examples/shop/**/*.{ts,js}', 'examples/plugin-minimal/*.js'],
    rules: importRule([{ regex: '(src|dist)/', message: 'A plug-in imports trace-campaign/plugin.' }]),
  },
  { files: ['src/registry.ts'], rules: importRule(importPatterns('registry.ts', registryMayImport, './')) },
  { files: ['src/metrics.ts'], rules: importRule(importPatterns('metrics.ts', [], './')) },
  { files: ['src/terminal.ts'], rules: importRule(importPatterns('terminal.ts', ['domain'], './')) },
  // Commands print by src/terminal.ts, which lets no text of others move the cursor.
  { files: ['src/cli/**/*.ts', 'src/view/*.ts', 'src/gateway/*.ts'], rules: { 'no-console': 'error' } },
  {
    // The rules above see import declarations only. The command line loads what it needs when it needs it, a store in a bucket its client, and tracing its SDK.
    files: ['src/**/*.ts'],
    ignores: ['src/cli/**', 'src/store/open-store.ts', 'src/temporal/tracing.ts'],
    rules: { 'no-restricted-syntax': ['error', 'ImportExpression'] },
  },
);
