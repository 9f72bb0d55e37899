/**
 * `campaign env check`: the conformance checks, told as they go. Invariant: stdout is for the verdict alone; which check is under way, how
 * long things take and what is worth knowing go to stderr.
 */
import { selectionRuleSchema } from '../../domain/campaign';
import type { Environment, EnvironmentDescription } from '../../domain/environment';
import { checkEnvironment, type Finding } from '../../environments/conformance';
import { timed } from '../../environments/conformance/timing';
import type { SimulatedUser } from '../../partners/types';
import { registry as allKinds, type Registry } from '../../registry';

/** Says the same whatever it hears: what is checked is the environment. */
export function createUser(): { user: SimulatedUser; hasSpoken: () => boolean } {
  let spoken = false;
  const speak = async () => {
    spoken = true;
    return { role: 'user', content: 'Please go on.' } as const;
  };
  return { user: { id: 'check', speak }, hasSpoken: () => spoken };
}

export async function checkAloud(o: {
  /** Called twice: each time for a process of its own. */
  open: () => Promise<Environment>;
  isUserPlayed: () => boolean;
  /** Silence after which a campaign kills it. */
  silenceSeconds?: number | undefined;
  say: (line: string) => void;
  registry?: Registry;
}): Promise<Finding[]> {
  const { open, isUserPlayed, silenceSeconds = Infinity, say, registry = allKinds } = o;
  const started = performance.now();
  const opened = await open();
  const { environment, slowest } = timed(opened);
  const notes: Finding[] = [];
  let description: EnvironmentDescription | undefined;
  try {
    const findings = await checkEnvironment(
      { ...environment, describe: async () => (description = await environment.describe()) },
      {
        again: open,
        isUserPlayed,
        onCheck: (check) => say(`${((performance.now() - started) / 1000).toFixed(1).padStart(6)} s  ${check}`),
        onNote: (note) => void notes.push(note),
      },
    );
    const times = Object.entries(slowest).map(([method, seconds]) => `${method} ${seconds.toFixed(2)} s`);
    if (times.length > 0) say(`slowest: ${times.join(', ')}`);
    for (const [method, seconds] of Object.entries(slowest))
      if (seconds > silenceSeconds)
        say(
          `note: ${method}: took ${seconds.toFixed(1)} s, and a campaign kills the process after ${silenceSeconds} s without an answer; set target.silenceSeconds to ${Math.ceil(2 * seconds)} in the campaign file, or make it faster`,
        );
    for (const { check, problem, fix } of notes) say(`note: ${check}: ${problem}; ${fix}`);
    for (const note of description?.notes ?? []) say(`note: ${note}`);
    if (description && findings.length === 0)
      for (const lack of lacksOf(description, registry)) say(`note: it keeps the contract, but ${lack}`);
    return findings;
  } finally {
    await environment.close().catch(() => undefined);
  }
}

/** What the analysts and synthesizers that need no files can't do with it. */
function lacksOf(description: EnvironmentDescription, { analysts, synthesizers }: Registry): string[] {
  const rule = selectionRuleSchema.parse({});
  return [...analysts, ...synthesizers].flatMap((kind) => {
    const part = made(() => kind.open({ kind: kind.kind }, undefined));
    if (!part || part instanceof Promise) return [];
    const why = part.unsuited?.(description, rule);
    return why === undefined
      ? []
      : [`${'label' in part ? 'analyst' : 'synthesizer'} ${kind.kind} can't work on it: ${why}`];
  });
}

/** Undefined where it needs more than defaults: somebody's own files. */
function made<Part>(make: () => Part): Part | undefined {
  try {
    return make();
  } catch {
    return undefined;
  }
}
