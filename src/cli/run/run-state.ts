/** What a supervisor runs, on disk. Invariant: replaced whole at every change, so that it can be read after a kill -9 at any moment. */
import { mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { z } from 'zod';
import type { Home } from '../project';

const runStateSchema = z.object({
  processes: z.array(z.object({ name: z.string(), pid: z.number().int(), started: z.string() })),
  /** Where this home's Temporal server and its UI listen. */
  temporalAddress: z.string().optional(),
  uiUrl: z.string().optional(),
});
export type RunState = z.infer<typeof runStateSchema>;

/** The recorded state; empty if there is none. */
export function readRunState(home: Home): RunState {
  try {
    return runStateSchema.parse(JSON.parse(readFileSync(home.state, 'utf8')));
  } catch {
    return { processes: [] };
  }
}

export function writeRunState(home: Home, state: RunState): void {
  mkdirSync(dirname(home.state), { recursive: true });
  const aside = `${home.state}.${process.pid}`;
  writeFileSync(aside, JSON.stringify(state, null, 2));
  renameSync(aside, home.state);
}
