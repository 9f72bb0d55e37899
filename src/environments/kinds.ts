/** The interface of a kind of environments. Command line, checks and report use nothing else and ask for no kind by name. */
import type { ArtifactStore } from '../store/store';
import type { Environment } from '../domain/environment';
import { checkProgram, checkVariable, type Program } from '../domain/allowed';
import { type EnvironmentSpec, type Kind, kindOf } from '../domain/kinds';
import type { PartnerModels, Partners } from '../llm/partners';
import type { Finding } from './conformance';

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

/** Throws NotAllowed unless this process may run the program that the options name, and pass it their variables. */
export function checkAllowed(kind: string, read: { passEnv?: unknown }, runs: readonly string[]): void {
  checkProgram(pickProgram(kind, read, runs));
  for (const name of (read.passEnv as string[] | undefined) ?? []) checkVariable('target.passEnv', name);
}

export interface EnvironmentKind extends Kind<Promise<Environment> | Environment, EnvironmentContext> {
  /** Made by campaigns: a campaign file can't name it. */
  readonly internal?: boolean;
  /** Fix to show if the environment does not describe itself, when correcting the campaign file is not enough. */
  readonly remedy?: string;
  /** Returns the models that play the other parties of its episodes. */
  readonly partners?: (spec: EnvironmentSpec) => PartnerModels;
  /** Options that decide which code its processes run. */
  readonly runs?: readonly string[];
  /** Digest of the user's files that it is made of; rejects where one can't be read. */
  readonly contents?: (spec: EnvironmentSpec) => Promise<string>;
  /** A model always plays the user: option `user` must name it. */
  readonly needsUser?: boolean;
  /** Runs in `campaign check` in place of the conformance checks. */
  readonly check?: (spec: EnvironmentSpec, say: (line: string) => void, run?: CheckRun) => Promise<readonly Finding[]>;
}

export const openEnvironment = async (
  spec: EnvironmentSpec,
  { kinds, ...context }: EnvironmentContext & { kinds: readonly EnvironmentKind[] },
): Promise<Environment> => kindOf(kinds, spec).open(spec, context);

export const partnersOf = (spec: EnvironmentSpec, kinds: readonly EnvironmentKind[]): PartnerModels =>
  kindOf(kinds, spec).partners?.(spec) ?? {};
