import { resolve } from 'node:path';

/** The project's folder, from `src/` and from `dist/` alike. It has a file of its own so that the command line starts without the schemas of domain. */
export const projectRoot = resolve(__dirname, '..', '..');
