/**
 * `campaign env check FILE`: a synthesized environment's module, checked outside of any campaign as a campaign would. Invariants: its code
 * runs in the sandbox only; stdout is for what was found.
 */
import { readFile } from 'node:fs/promises';
import { reasonOf } from '../../domain/failures';
import { callText, type Message } from '../../domain/messages';
import { openModule } from '../../sandbox/module';
import { SandboxError } from '../../sandbox/sandbox';
import { play, type ScriptedEpisode } from '../../sandbox/scripted-episode';
import { selfTest } from '../../sandbox/self-test';
import { staticFindings } from '../../sandbox/static-checks';
import { withoutTypes } from '../../sandbox/strip-types';
import { UserError } from '../errors';

export const isModuleFile = (args: readonly string[]): boolean =>
  args.length === 1 && /\.[mc]?[jt]s$/.test(args[0] ?? '');

export interface ModuleCheck {
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
