/** What a supervisor runs, on disk. Invariant: replaced whole at every change, so that it can be read after a kill -9 at any moment. */
import { mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { z } from 'zod';
import type { Home } from '../project';
import { isRunning, recordedProcessSchema } from './processes';

const runStateSchema = z.object({
  processes: z.array(recordedProcessSchema),
  /** Where this home's Temporal server and its UI listen. */
  temporalAddress: z.string().optional(),
  uiUrl: z.string().optional(),
});
export type RunState = z.infer<typeof runStateSchema>;

/** The recorded state; empty if there is none or if it is damaged: it is written anew at the next change. */
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
  try {
    writeFileSync(aside, JSON.stringify(state, null, 2));
    renameSync(aside, home.state);
  } catch (error) {
    rmSync(aside, { force: true });
    throw error;
  }
}

/** Address of the home's own server, if that runs: the port of one that is gone may be another home's by now. */
export function serverOf(home: Home): string | undefined {
  const { temporalAddress, processes } = readRunState(home);
  return processes.some((one) => one.name === 'temporal' && isRunning(one)) ? temporalAddress : undefined;
}
