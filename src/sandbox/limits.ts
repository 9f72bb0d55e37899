/** Limits of environment modules. A call that exceeds one throws a SandboxError, which fails the rollout in play and is a finding in the self-test. */

/**
 * CPU time of one call, ms. CPU, not wall: a machine that is busy with other work must not break a healthy module. The slowest step of
 * a generated module takes 3 ms.
 */
export const CALL_CPU_MS = 1_000;
/** CPU ms after which the thread is killed: loops inside a built-in (a sort, an indexOf) cannot be interrupted. */
export const KILL_CPU_MS = 1_250;
/** Wall ms after which it is killed even so: a thread that is given a fiftieth of a core is still healthy. */
export const KILL_WALL_MS = 60_000;

/** Pages of 64 KiB, the interpreter's 5 MiB included: an instance has kilobytes. */
export const MEMORY_PAGES = 512;

/** Threads of all sandboxes of a process, 63 MB each: half a gigabyte. */
export const MOST_THREADS = 8;
/** Time that a busy sandbox keeps its thread while another one waits. */
export const TURN_MS = 3_000;
/** How long a sandbox without calls keeps its thread while another one waits: it may be between two calls. */
export const IDLE_MS = 500;

/** Characters of a call's result: a state is sent to every step. */
export const RESULT_CHARS = 1_000_000;
/** Levels of arrays and objects in it: JSON is written and compared by recursion. */
export const MOST_DEPTH = 200;
/** Characters of one text that a model reads: 100,000 are about 25,000 tokens, most of a context. */
export const TEXT_CHARS = 100_000;
/** Characters of all texts of an episode: more than a context of 128k tokens. */
export const EPISODE_CHARS = 600_000;
/** Characters of the result of describe(): tools with long descriptions take 20,000. */
export const DESCRIPTION_CHARS = 200_000;
/** Characters of a name (tool, shortcut, key of a breakdown). */
export const NAME_CHARS = 200;
/** Characters of a module's own words in an error or a finding, which every failed rollout repeats. */
export const QUOTED_CHARS = 300;

/** Messages that answer one step beyond one for each of its calls, and first messages. */
export const MORE_MESSAGES = 16;
export const MOST_ANSWERS = 1_000;
/** Steps of an episode and messages of a reference solution: the longest benchmark has 200. */
export const MOST_STEPS = 200;
export const MOST_TOOLS = 64;
/** Tools that a synthesized environment offers: the method's; none where the target has none. */
export const OFFERED_TOOLS = { fewest: 3, most: 5 } as const;
export const mayOffer = (tools: number): boolean =>
  tools === 0 || (tools >= OFFERED_TOOLS.fewest && tools <= OFFERED_TOOLS.most);
/** Shortcuts, entries of a breakdown, actions and facts of a reference. */
export const MOST_ENTRIES = 64;
export const MOST_EXPORTS = 100;

/** Limits of a tool's schema, from which the self-test draws values. */
export const SCHEMA = { options: 1_000, patternChars: 1_000 } as const;
/** Characters that a pattern is expanded to at most. */
export const MOST_PARTS = 64;

/**
 * CPU time of a self-test, ms: so much, or so much for each episode that is planned. A generated module takes 3 s; one with conversations in
 * JSON takes 8 to 12 s for 4,500 episodes.
 */
export const SELF_TEST_CPU_MS = 8_000;
export const SELF_TEST_EPISODE_CPU_MS = 6;

/** Control characters other than tab and line ends; halves of surrogate pairs. */
const UNFIT = /[^\P{Cc}\t\n\r]|\p{Cs}/u;
/** For a single line: white space, and what turns the direction of writing, as well. */
const UNPRINTABLE = /(?:\s|\p{Cc}|\p{Cs}|[\u2028-\u202e\u2066-\u2069])+/gu;

/** Returns true if a text holds control characters or half a surrogate pair, which models and files do not accept unchanged. */
export const isUnfit = (text: string): boolean => UNFIT.test(text);

/** Returns the text on one line, cut to `most` characters. */
export function quoted(text: string, most: number = QUOTED_CHARS): string {
  const line = text.slice(0, most).replace(UNPRINTABLE, ' ');
  return text.length > most ? `${line}…` : line;
}
