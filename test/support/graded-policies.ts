/**
 * Scripted policies that are right to a degree, made of a module's own reference solutions, to see whether its reward tells them apart.
 * Invariants: they know nothing of the module but its interface; the same module gives the same figures.
 */
import { callsIn, isWrite, assistantMessages, say } from '../../src/sandbox/conversation';
import { openModule, play, type ScriptedEpisode } from '../../src/sandbox/module';
import { changedSolutions } from '../../src/sandbox/policies';
import { seededRandom } from '../../src/domain/seeds';
import type { AssistantMessage, ToolCall } from '../../src/domain/messages';

interface Grade {
  policy: string;
  /** Over the seeds on which it differs from the solution, or over all. */
  seeds: number;
  reward: number;
  success: number;
}

interface Grading {
  /** By degree, from nothing to the whole solution. */
  ladder: Grade[];
  /** Solutions with one thing wrong. */
  flawed: Grade[];
}

const MIXTURES = [0.25, 0.5, 0.75];
const FAREWELL = 'That is done.';

/** Plays all policies on seeds 0 to `seeds` - 1. */
export async function gradeModule({ source, seeds }: { source: string; seeds: number }): Promise<Grading> {
  const module = openModule({ source });
  try {
    const { tools } = await module.describe();
    const writes = new Set(tools.filter(isWrite).map(({ name }) => name));
    const isA = ({ name }: ToolCall): boolean => writes.has(name);
    const whole = await Promise.all(
      Array.from({ length: seeds }, async (_, seed) => play(module, { seed, script: await module.solve(seed) })),
    );
    const nothing = await Promise.all(whole.map(({ seed }) => play(module, { seed, script: [say(FAREWELL)] })));
    /** `scriptOf` gives undefined where the policy would do as the solution does. */
    const grade = async (policy: string, scriptOf: (solved: ScriptedEpisode) => AssistantMessage[] | undefined) => {
      const episodes = await Promise.all(
        whole.map((solved) => {
          const script = scriptOf(solved);
          return script && play(module, { seed: solved.seed, script });
        }),
      );
      return gradeOf(
        policy,
        episodes.filter((one) => one !== undefined),
      );
    };

    const parts = [0, 1, 2].map((k) =>
      grade(k === 0 ? 'looks up, writes nothing' : `the first ${k} of more writes`, ({ messages }) =>
        callsIn(messages).filter(isA).length > k
          ? withFirst({ messages: assistantMessages(messages), isA, most: k })
          : undefined,
      ),
    );
    const mixtures = MIXTURES.map((share) => {
      const mixed = whole.map((solved, n) => (seededRandom('graded', share, n)() < share ? solved : nothing[n]!));
      return gradeOf(`the solution on ${share * 100}% of the seeds`, mixed);
    });
    const changed = changedSolutions({ writes: tools.filter(isWrite) });
    const flawed = [
      ...(await Promise.all(parts)),
      await grade('the solution without its last words', ({ messages }) =>
        withoutLastWords(assistantMessages(messages)),
      ),
      ...(await Promise.all(
        changed.map(({ name, on }) =>
          grade(name, (solved) => {
            const script = on(solved);
            return Array.isArray(script) ? [...(script as AssistantMessage[])] : undefined;
          }),
        ),
      )),
    ].filter((one) => one.seeds > 0);
    return { ladder: [gradeOf('nothing', nothing), ...mixtures, gradeOf('the whole solution', whole)], flawed };
  } finally {
    await module.close();
  }
}

function gradeOf(policy: string, episodes: readonly ScriptedEpisode[]): Grade {
  const share = (of: (episode: ScriptedEpisode) => number) =>
    episodes.reduce((sum, one) => sum + of(one), 0) / Math.max(1, episodes.length);
  const success = share(({ reward }) => Number(reward >= 1));
  return { policy, seeds: episodes.length, reward: share(({ reward }) => reward), success };
}

/** The messages with the first writes only. */
function withFirst(o: {
  messages: AssistantMessage[];
  isA: (call: ToolCall) => boolean;
  most: number;
}): AssistantMessage[] {
  let done = 0;
  return o.messages.flatMap((message) => {
    if (!message.toolCalls) return [message];
    const toolCalls = message.toolCalls.filter((call) => !o.isA(call) || ++done <= o.most);
    return toolCalls.length > 0 ? [{ ...message, toolCalls }] : [];
  });
}

/** With a farewell in place of what it says at the end, unless it says nothing then. */
function withoutLastWords(messages: AssistantMessage[]): AssistantMessage[] | undefined {
  const last = messages.at(-1);
  return last && !last.toolCalls ? [...messages.slice(0, -1), say(FAREWELL)] : undefined;
}
