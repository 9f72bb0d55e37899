/** What hints give away. Invariant: a hint says what kind of thing to do; a call, or a value that has to be found out, is the agent's to find. */
import type { Reference } from '../domain/environment';
import type { ToolSchema } from '../domain/messages';
import { callsIn } from './audit-policy';
import type { EnvironmentModule } from './module';
import type { ScriptedEpisode } from './scripted-episode';
import type { Stage } from './stage';
import { quoted } from './text';

/** Four sentences. */
const MOST_CHARS = 600;
/** Values that are looked for in an instance, their characters, and those of its first messages in which they are. */
const LOOKED = { values: 64, valueChars: 200, chars: 20_000 };

interface Hinted {
  module: EnvironmentModule;
  stage: Stage;
  /** The reference solutions. */
  solved: readonly ScriptedEpisode[];
  tools: readonly ToolSchema[];
}

/** At most one finding of each kind. */
export async function* hintFindings({ module, stage, solved, tools }: Hinted): AsyncGenerator<string> {
  const hinted = await stage.each(solved, async (episode) => {
    const state = await module.make(episode.seed);
    const secrets = secretsOf(episode, await module.reference(state));
    const hint = await module.hint(state);
    return { seed: episode.seed, hint, holds: holder(hint.slice(0, MOST_CHARS)), secrets };
  });
  const long = hinted.find(({ hint }) => hint.length > MOST_CHARS);
  if (long)
    yield `hint: seed ${long.seed} gives ${long.hint.length} characters: say it in 1 to 4 sentences, at most ${MOST_CHARS} characters`;

  const called = hinted.flatMap(({ seed, hint, holds }) =>
    tools.filter(({ name }) => holds(name)).map(({ name }) => ({ seed, hint, name })),
  );
  const [call] = called;
  if (call)
    yield (
      `hint: seed ${call.seed}: "${quoted(call.hint)}" names the tool ${quoted(call.name, 100)}: say what kind of thing ` +
      `to do, in words of the policy`
    );

  const told = hinted.flatMap(({ seed, hint, holds, secrets }) =>
    secrets.filter(holds).map((secret) => ({ seed, hint, secret })),
  );
  const [value] = told;
  if (value)
    yield (
      `hint: seed ${value.seed}: "${quoted(value.hint)}" gives away "${quoted(value.secret, 100)}", an argument of the ` +
      `solution that the first messages do not hold: say how to find it`
    );
}

/** Arguments of the solution's calls that the first messages do not hold. */
function secretsOf(episode: ScriptedEpisode, { actions }: Reference): string[] {
  const given = [...callsIn(episode.messages), ...actions].flatMap(({ arguments: values }) => valuesOf(values));
  const values = [...new Set(given)].filter(({ length }) => length <= LOOKED.valueChars).slice(0, LOOKED.values);
  // The user's words come last, and are looked at before a long policy.
  const said = episode.start.map(({ content }) => content).reverse();
  const holds = holder(said.join('\n').slice(0, LOOKED.chars));
  return values.filter((value) => !holds(value));
}

/** Texts and numbers, however deep. */
function valuesOf(given: unknown): string[] {
  if (typeof given === 'string' || typeof given === 'number') return [String(given).trim()].filter(Boolean);
  return typeof given === 'object' && given !== null ? Object.values(given).flatMap(valuesOf) : [];
}

const WORD = /[\p{L}\p{N}_]/u;

/** Whether the text holds these words, not as a part of longer ones. */
export const holdsWords = (text: string, words: string): boolean => holder(text)(words);

/** The same for many words in one text. */
function holder(text: string): (words: string) => boolean {
  const within = text.toLowerCase();
  const inWord = (at: number, edge: string | undefined): boolean =>
    WORD.test(within[at] ?? '') && edge !== undefined && WORD.test(edge);
  return (words) => {
    const sought = words.toLowerCase();
    for (let at = within.indexOf(sought); at >= 0; at = within.indexOf(sought, at + 1))
      if (!inWord(at - 1, sought[0]) && !inWord(at + sought.length, sought.at(-1))) return true;
    return false;
  };
}
