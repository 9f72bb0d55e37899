/** `campaign check MODULE.js`: the static checks, self-test and audit that a campaign runs on a module of a synthesized environment. */
import { readFile } from 'node:fs/promises';
import { reasonOf } from '../../domain/failures';
import { callText, type Message } from '../../domain/messages';
import { serveEnvironment } from '../../environments/serve';
import { openModule, play, sandboxEnvironment, type ScriptedEpisode, withModule } from '../../sandbox/module';
import { unlessItFails } from '../../sandbox/sandbox';
import { selfTest } from '../../sandbox/self-test';
import { staticFindings, withoutTypes } from '../../sandbox/source';
import { sha256 } from '../../store/hash';
import { InputError } from '../errors';

export const isModuleFile = (path: string): boolean => /\.[mc]?[jt]s$/.test(path);

/** The program behind exported environments: serves a module on stdin and stdout. */
export async function serveModule(file: string): Promise<void> {
  const read = await readModule(file);
  if ('problem' in read) throw unreadable(file, read.problem);
  const environment = await sandboxEnvironment({ module: openModule(read), version: sha256(read.source) });
  await serveEnvironment({ environment });
}

const unreadable = (file: string, problem: string) =>
  new InputError({
    ...{ code: 'unreadable_file', field: 'module', value: file, reason: `${file} cannot be read: ${problem}` },
    fix: 'name a module, or a program after --',
  });

/** Reads a module; types of TypeScript are removed. */
async function readModule(file: string): Promise<ReturnType<typeof withoutTypes>> {
  const text = await readFile(file, 'utf8').catch((error: unknown) => {
    throw unreadable(file, reasonOf(error));
  });
  return file.endsWith('ts') ? withoutTypes(text) : { source: text };
}

interface ModuleCheck {
  passed: boolean;
  /** Findings in the text. */
  static: string[];
  /** Findings of played episodes, and of policies that must not score. */
  selfTest: string[];
  /** The reference solution of seed 0; absent if it fails. */
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

/** The check as text. */
export function moduleLines({ static: text, selfTest: played, episode }: ModuleCheck): string[] {
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
