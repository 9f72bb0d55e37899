/**
 * `campaign env check`: an environment by the conformance checks, or a synthesized module as a campaign would check it. Invariants: stdout is for the
 * verdict alone, and progress goes to stderr; a module's code runs in the sandbox only.
 */
import { readFile } from 'node:fs/promises';
import { selectionRuleSchema } from '../../domain/campaign';
import type { Environment, EnvironmentDescription } from '../../domain/environment';
import { reasonOf } from '../../domain/failures';
import { callText, type Message } from '../../domain/messages';
import { checkEnvironment, type Finding, timed } from '../../environments/conformance';
import type { SimulatedUser } from '../../partners/partners';
import { type Registry, registry as allKinds } from '../../registry';
import { openModule } from '../../sandbox/module';
import { SandboxError } from '../../sandbox/sandbox';
import { play, type ScriptedEpisode } from '../../sandbox/play';
import { selfTest } from '../../sandbox/self-test';
import { staticFindings, withoutTypes } from '../../sandbox/source';
import { UserError } from '../errors';

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

export const isModuleFile = (args: readonly string[]): boolean =>
  args.length === 1 && /\.[mc]?[jt]s$/.test(args[0] ?? '');

interface ModuleCheck {
  passed: boolean;
  /** Of the text alone. */
  static: string[];
  /** Of what it does, and of policies that must not pay. */
  selfTest: string[];
  /** The reference solution of seed 0; absent where it can't be played. */
  episode?: Pick<ScriptedEpisode, 'messages' | 'reward' | 'breakdown' | 'branch'>;
}

export async function checkModule({ file, say }: { file: string; say: (line: string) => void }): Promise<ModuleCheck> {
  const text = await readFile(file, 'utf8').catch((error: unknown) => {
    throw new UserError(`${file} cannot be read (${reasonOf(error)}); name a module, or a program after --`);
  });
  const plain = file.endsWith('ts') ? withoutTypes(text) : { source: text };
  if ('problem' in plain) return { passed: false, static: [plain.problem], selfTest: [] };
  const { source } = plain;
  const found = staticFindings(source);
  say('self-test and audit: 102 seeds, some seconds');
  const { findings } = await selfTest({ source });
  const episode = await solved(source);
  return {
    passed: found.length === 0 && findings.length === 0,
    static: found,
    selfTest: findings,
    ...(episode && { episode }),
  };
}

async function solved(source: string): Promise<ModuleCheck['episode']> {
  const module = openModule({ source });
  try {
    const { messages, reward, breakdown, branch } = await play(module, { seed: 0, script: await module.solve(0) });
    return { messages, reward, breakdown, ...(branch !== undefined && { branch }) };
  } catch (error) {
    if (error instanceof SandboxError) return undefined;
    throw error;
  } finally {
    await module.close();
  }
}

/** For people. */
export function rendered({ static: text, selfTest: played, episode }: ModuleCheck): string[] {
  const part = (name: string, findings: readonly string[]): string[] => [
    `${name}: ${findings.length === 0 ? 'nothing found' : `${findings.length} found`}`,
    ...findings.map((finding) => `- ${finding}`),
  ];
  if (!episode) return [...part('static checks', text), ...part('self-test and audit', played)];
  const branch = episode.branch === undefined ? '' : `, branch ${episode.branch}`;
  return [
    ...part('static checks', text),
    ...part('self-test and audit', played),
    '',
    'the reference solution of seed 0:',
    ...episode.messages.flatMap(turn),
    `reward ${episode.reward} ${JSON.stringify(episode.breakdown)}${branch}`,
  ];
}

function turn(message: Message): string[] {
  const speaker = message.role === 'assistant' ? 'agent' : message.role;
  const calls = message.role === 'assistant' ? (message.toolCalls ?? []) : [];
  return [
    ...(message.content === '' ? [] : [`  ${speaker}: ${message.content.replaceAll('\n', '\n    ')}`]),
    ...calls.map((call) => `  ${speaker} calls ${callText(call)}`),
  ];
}
