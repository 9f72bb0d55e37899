/**
 * `campaign env`: an environment by the conformance checks, or a synthesized module as a campaign would check it. Standard output is for the verdict
 * alone, progress goes to stderr. Options go through the schema that reads campaign files.
 */
import { readFile } from 'node:fs/promises';
import { resolve } from 'node:path';
import { sha256 } from '../store/hash';
import { openStore } from '../store/open-store';
import { runChecks } from '../checks/check';
import type { Environment, EnvironmentDescription } from '../domain/environment';
import { reasonOf } from '../domain/failures';
import { type EnvironmentSpec, kindOf, specSchemaOf } from '../domain/kinds';
import { callText, type Message } from '../domain/messages';
import { plainText } from '../domain/plain-text';
import { environments } from '../environments';
import { checkEnvironment, type Finding } from '../environments/conformance';
import type { EnvironmentContext, EnvironmentKind } from '../environments/kinds';
import { describeSpec, openEnvironment } from '../environments/open';
import { processKind } from '../environments/process';
import { serveEnvironment } from '../environments/serve';
import { withPlugins } from '../plugins';
import { play, sandboxEnvironment, type ScriptedEpisode, openModule, withModule } from '../sandbox/module';
import { unlessItFails } from '../sandbox/sandbox';
import { selfTest } from '../sandbox/self-test';
import { staticFindings, withoutTypes } from '../sandbox/source';
import { note, print, wrapText } from '../terminal';
import { changePaths, loadCampaign } from './campaign-file';
import { bridgeChecks } from './checks/target';
import { requireAll } from './doctor';
import { UserError } from './errors';
import { parseFields } from './input';
import { type CommonOptions, homeOf } from './options';
import { INTERRUPTED, onInterrupt } from './run/supervisor';

export interface CheckOptions extends CommonOptions {
  /** Seconds that a request may be left unanswered. */
  silence?: number;
}

const SILENCE_SECONDS = 20;

/** @returns the exit code. What comes after `--` is a program's command line. */
export async function envCheck(args: string[], options: CheckOptions): Promise<number> {
  const separated = process.argv.includes('--');
  const say = (line: string) => note(wrapText(plainText(line), process.stderr.columns));
  const show = (verdict: unknown, lines: readonly string[]) => {
    if (options.json) print(JSON.stringify(verdict));
    else for (const line of lines) print(wrapText(plainText(line), process.stdout.columns));
  };
  if (!separated && isModuleFile(args)) {
    const check = await checkModule({ file: args[0]!, say });
    show(check, rendered(check));
    return check.passed ? 0 : 1;
  }
  const campaign = !separated && isCampaignFile(args) ? loadCampaign({ file: args[0]! }) : undefined;
  const { target: spec, plugins } = campaign ?? { target: specOfArguments({ args, separated }), plugins: [] };
  const kinds = withPlugins(plugins).environments;
  const verdict = (findings: readonly Finding[]): number => {
    const problems = findings.map(findingText);
    show(findings, problems.length > 0 ? problems : [`${args.join(' ')} keeps the contract`]);
    return problems.length > 0 ? 1 : 0;
  };
  const { silence } = options;
  const { check } = kindOf(kinds, spec);
  if (check) {
    const { signal, dispose } = onInterrupt({
      onFirst: () => say('ending: what was started goes first, with its folder'),
      onSecond: () => undefined,
    });
    try {
      return verdict(await check(spec, say, { signal, silenceMs: silence && silence * 1000 }));
    } catch (error) {
      if (signal.aborted) return INTERRUPTED;
      throw error;
    } finally {
      dispose();
    }
  }
  requireAll(await runChecks(bridgeChecks({ target: spec, plugins }, { named: 'the arguments' })));
  let isUserPlayed = false;
  // It says the same whatever it hears: what is checked is the environment.
  const speak = async () => {
    isUserPlayed = true;
    return { role: 'user', content: 'Please go on.' } as const;
  };
  const context = { partners: { user: { id: 'check', speak } }, silenceMs: (silence ?? SILENCE_SECONDS) * 1000 };
  const findings = await checkAloud({
    open: () => openHere(spec, options, { ...context, kinds }),
    isUserPlayed: () => isUserPlayed,
    silenceSeconds: describeSpec(spec, kinds).silenceSeconds,
    say,
  });
  return verdict(findings);
}

const isCampaignFile = (args: readonly string[]): boolean => args.length === 1 && /\.ya?ml$/.test(args[0] ?? '');

/** `campaign env serve`: a module of a synthesized environment. */
export async function serveModule(file: string): Promise<void> {
  await serveEnvironment({ environment: await openModuleFile(file) });
}

async function openModuleFile(file: string): Promise<Environment> {
  const read = await readModule(file);
  if ('problem' in read) throw new UserError(`${file}: ${read.problem}`);
  return sandboxEnvironment({ module: openModule(read), version: sha256(read.source) });
}

/** Without types, where it is TypeScript. */
async function readModule(file: string): Promise<ReturnType<typeof withoutTypes>> {
  const text = await readFile(file, 'utf8').catch((error: unknown) => {
    throw new UserError(`${file} cannot be read (${reasonOf(error)}); name a module, or a program after --`);
  });
  return file.endsWith('ts') ? withoutTypes(text) : { source: text };
}

const openHere = async (
  spec: EnvironmentSpec,
  options: CommonOptions,
  context: Omit<EnvironmentContext, 'store'> & { kinds?: readonly EnvironmentKind[] } = {},
) => openEnvironment(spec, { kinds: environments, store: await openStore(homeOf(options).root), ...context });

export const argumentsUsage = (kinds = environments): string =>
  [
    'FILE.js',
    'CAMPAIGN.yaml',
    ...kinds.flatMap(({ kind, checkArguments }) => (checkArguments ? [`${kind} ${checkArguments.usage}`] : [])),
    '-- COMMAND [ARGUMENT...]',
  ].join(' | ');

/**
 * A kind with its arguments, or a program's command line. What comes after `--` (`separated`) is always
 * the last.
 */
export function specOfArguments(o: {
  args: readonly string[];
  separated: boolean;
  kinds?: readonly EnvironmentKind[];
}): EnvironmentSpec {
  const { args, separated, kinds = environments } = o;
  const [first, ...rest] = args;
  if (first === undefined) throw new UserError(`name an environment: ${argumentsUsage(kinds)}`);
  const named = separated ? undefined : kinds.find(({ kind }) => kind === first);
  if (!named?.checkArguments) return parsed(processKind, { command: args });
  const { usage, example, variable = '', options } = named.checkArguments;
  const set = process.env[variable];
  const given = rest.length === 0 && set ? [set] : rest;
  if (usage.endsWith('...') ? given.length > 0 : given.length === 1) return parsed(named, options(given));
  const or = variable && ` (or set ${variable})`;
  throw new UserError(`${first} takes ${usage}${or}, not "${rest.join(' ')}"; ${exampleOf(first, example)}`);
}

/** Paths count from the working directory. */
function parsed(kind: EnvironmentKind, options: Record<string, unknown>): EnvironmentSpec {
  const { data, problems } = parseFields(specSchemaOf([kind]), { kind: kind.kind, ...options });
  if (data) return changePaths(data as EnvironmentSpec, kind, (path) => resolve(path));
  const example = kind.checkArguments ? `; ${exampleOf(kind.kind, kind.checkArguments.example)}` : '';
  throw new UserError(`${kind.kind}: ${problems[0]?.text}${example}`);
}

const exampleOf = (kind: string, example: string): string => `for example: campaign env check ${kind} ${example}`;

const findingText = ({ check, problem, fix }: Finding): string => `${check}: ${problem}; ${fix}`;

export async function checkAloud(o: {
  /** Called twice: each time for a process of its own. */
  open: () => Promise<Environment>;
  isUserPlayed: () => boolean;
  /** Silence after which a campaign kills it. */
  silenceSeconds?: number | undefined;
  say: (line: string) => void;
}): Promise<Finding[]> {
  const { open, isUserPlayed, silenceSeconds = Infinity, say } = o;
  const started = performance.now();
  const environment = await open();
  const slowest: Record<string, number> = {};
  const notes: string[] = [];
  let description: EnvironmentDescription | undefined;
  try {
    const findings = await checkEnvironment(
      { ...environment, describe: async () => (description = await environment.describe()) },
      {
        again: open,
        onRequest: (method, seconds) => (slowest[method] = Math.max(slowest[method] ?? 0, seconds)),
        isUserPlayed,
        onCheck: (check) => say(`${((performance.now() - started) / 1000).toFixed(1).padStart(6)} s  ${check}`),
        onNote: (note) => void notes.push(findingText(note)),
      },
    );
    const times = Object.entries(slowest);
    if (times.length > 0)
      say(`slowest: ${times.map(([method, seconds]) => `${method} ${seconds.toFixed(2)} s`).join(', ')}`);
    const late = times
      .filter(([, seconds]) => seconds > silenceSeconds)
      .map(
        ([method, seconds]) =>
          `${method}: took ${seconds.toFixed(1)} s, and a campaign kills the process after ${silenceSeconds} s without an answer; set target.silenceSeconds to ${Math.ceil(2 * seconds)} in the campaign file, or make it faster`,
      );
    for (const note of [...late, ...notes, ...(description?.notes ?? [])]) say(`note: ${note}`);
    return findings;
  } finally {
    await environment.close().catch(() => undefined);
  }
}

const isModuleFile = (args: readonly string[]): boolean => args.length === 1 && /\.[mc]?[jt]s$/.test(args[0] ?? '');

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
  const read = await readModule(file);
  if ('problem' in read) return { passed: false, static: [read.problem], selfTest: [] };
  const found = staticFindings(read.source);
  say('self-test and audit: 102 seeds, some seconds');
  const { findings } = await selfTest(read);
  const passed = found.length === 0 && findings.length === 0;
  const episode = await solved(read.source);
  return { passed, static: found, selfTest: findings, ...(episode && { episode }) };
}

const solved = (source: string): Promise<ModuleCheck['episode']> =>
  unlessItFails(
    withModule(source, async (module) => {
      const { messages, reward, breakdown, branch } = await play(module, { seed: 0, script: await module.solve(0) });
      return { messages, reward, breakdown, ...(branch !== undefined && { branch }) };
    }),
  );

/** For people. */
export function rendered({ static: text, selfTest: played, episode }: ModuleCheck): string[] {
  const lines = Object.entries({ 'static checks': text, 'self-test and audit': played }).flatMap(([name, findings]) => [
    `${name}: ${findings.length === 0 ? 'nothing found' : `${findings.length} found`}`,
    ...findings.map((finding) => `- ${finding}`),
  ]);
  if (!episode) return lines;
  const branch = episode.branch === undefined ? '' : `, branch ${episode.branch}`;
  const end = `reward ${episode.reward} ${JSON.stringify(episode.breakdown)}${branch}`;
  return [...lines, '', 'the reference solution of seed 0:', ...episode.messages.flatMap(turn), end];
}

function turn(message: Message): string[] {
  const speaker = message.role === 'assistant' ? 'agent' : message.role;
  const calls = message.role === 'assistant' ? (message.toolCalls ?? []) : [];
  return [
    ...(message.content === '' ? [] : [`  ${speaker}: ${message.content.replaceAll('\n', '\n    ')}`]),
    ...calls.map((call) => `  ${speaker} calls ${callText(call)}`),
  ];
}
