/**
 * Modules that are slow to load or that only some commands need. Invariants: `campaign --help` and a mistyped command load none of them;
 * none of them imports this file, or imports would go in a circle (a command that needs such a module loads it itself).
 */
/* eslint-disable @typescript-eslint/no-require-imports -- a dynamic import in CommonJS output would need file extensions */
export const lazy = {
  retry: () => require('./retry') as typeof import('./retry'),
  start: () => require('./start') as typeof import('./start'),
  watch: () => require('./watch') as typeof import('./watch'),
  campaignFile: () => require('./campaign-file') as typeof import('./campaign-file'),
  campaignSchema: () => require('./campaign-schema') as typeof import('./campaign-schema'),
  temporal: () => require('./temporal') as typeof import('./temporal'),
  environments: () => require('../environments/open') as typeof import('../environments/open'),
  serveEnvironment: () => require('../environments/serve') as typeof import('../environments/serve'),
  partners: () => require('../partners/open') as typeof import('../partners/open'),
  parts: () => require('./checks/parts') as typeof import('./checks/parts'),
  languageModelPlan: () => require('./plan/language-models') as typeof import('./plan/language-models'),
  registry: () => (require('../registry') as typeof import('../registry')).registry,
  folderStore: () => require('../artifacts/folder-store') as typeof import('../artifacts/folder-store'),
};
