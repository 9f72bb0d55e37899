/**
 * The interface of a kind of environments. Command line, checks and report use nothing else and ask for no kind by name.
 */
import type { ArtifactStore } from '../store/store';
import type { Environment } from '../domain/environment';
import type { Program } from '../domain/allowed';
import type { EnvironmentSpec, Kind } from '../domain/kinds';
import type { Partners } from '../llm/partners';
import type { Finding } from './conformance';
import type { ProcessOptions } from './process';

export interface EnvironmentContext {
  store: ArtifactStore;
  /** Take the place of the models that the spec names. */
  partners?: Partners;
}

export interface CheckRun {
  /** Ends everything that was started. */
  signal?: AbortSignal | undefined;
}

/** The parsed options that decide which code runs, as `checkProgram` takes them. */
export const pickProgram = (kind: string, read: object, runs: readonly string[]): Program => ({
  kind,
  ...Object.fromEntries(Object.entries(read).filter(([name]) => runs.includes(name))),
});

export interface EnvironmentKind extends Kind<Promise<Environment> | Environment, EnvironmentContext> {
  /** Made by campaigns: a campaign file can't name it. */
  readonly internal?: boolean;
  /** Returns the name of an environment that has not described itself; by default its kind. */
  readonly label?: (spec: EnvironmentSpec) => string;
  /** How to look into one that does not describe itself, where there is more to do than to correct the campaign file. */
  readonly remedy?: (spec: EnvironmentSpec) => string;
  /** How its processes are run, and the models that play its other parties; absent of one that runs in process. */
  readonly program?: (spec: EnvironmentSpec) => ProcessOptions;
  /** Options that decide which code its processes run. */
  readonly runs?: readonly string[];
  /** Digest of the user's files that it is made of; rejects where one can't be read. */
  readonly contents?: (spec: EnvironmentSpec) => Promise<string>;
  /** A Python environment in the project's folder, and the command that installs it. */
  readonly python?: { readonly environment: string; readonly command: string };
  /** Options that name folders, and what each must hold. */
  readonly folders?: readonly { readonly option: string; readonly name: string; readonly holds: string }[];
  /** A model always plays the user: option `user` must name it. */
  readonly needsUser?: boolean;
  /** Runs in `campaign check` in place of the conformance checks. */
  readonly check?: (spec: EnvironmentSpec, say: (line: string) => void, run?: CheckRun) => Promise<readonly Finding[]>;
}
