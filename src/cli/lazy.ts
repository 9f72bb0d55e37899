/**
 * Modules that are slow to load or that only some commands need. Invariant: `campaign --help` and a mistyped command load none of them.
 */
/* eslint-disable @typescript-eslint/no-require-imports -- a dynamic import in CommonJS output would need file extensions */
export const lazy = {
  run: () => require('./run/command') as typeof import('./run/command'),
  start: () => require('./start') as typeof import('./start'),
  watch: () => require('./watch') as typeof import('./watch'),
  doctor: () => require('./doctor') as typeof import('./doctor'),
  campaignFile: () => require('./campaign-file') as typeof import('./campaign-file'),
  campaignSchema: () => require('./campaign-schema') as typeof import('./campaign-schema'),
  temporal: () => require('./temporal') as typeof import('./temporal'),
  environments: () => require('../environments/open') as typeof import('../environments/open'),
  conformance: () => require('../environments/conformance') as typeof import('../environments/conformance'),
  serveEnvironment: () => require('../environments/serve') as typeof import('../environments/serve'),
  partners: () => require('../partners/open') as typeof import('../partners/open'),
  folderStore: () => require('../artifacts/folder-store') as typeof import('../artifacts/folder-store'),
  terminalReport: () => require('../report/terminal') as typeof import('../report/terminal'),
};
