/**
 * The self-test of a synthesized environment, before any model sees it. Invariants: it knows nothing but the module's own interface; a
 * module passes exactly if there is no finding; each finding says what is wrong, where, and how to mend it.
 */
import type { JsonSchema, Message, ToolSchema } from '../domain/messages';
import type { SelfTest } from '../domain/results';
import { SUCCESS } from '../domain/rollout';
import { openModule, REQUIRED_EXPORTS, type EnvironmentModule } from './module';
import { play, type ScriptedEpisode, type Script } from './scripted-episode';
import { SandboxError } from './sandbox';
import { CALIBRATION_SEEDS, HELD_OUT_SEEDS, TRAINING_SEEDS } from './seeds';
import { trivialPolicies } from './trivial-policies';
import { expressionOf, vocabularyOf } from './vocabulary';

/** Part of the key of a stored result: changes whenever a module could be judged otherwise. */
export const SELF_TEST_VERSION = '3';

/** Seeds from each of the three ranges. */
const SEEDS = [CALIBRATION_SEEDS, TRAINING_SEEDS, HELD_OUT_SEEDS].flatMap((from) =>
  Array.from({ length: 34 }, (_, n) => from + n),
);
const TOOLS = { fewest: 3, most: 5 };
const DISTINCT = 0.8;
/** Limits of the share of successes and of the mean reward: of policies that never read, and of shortcuts that do. */
const LIMITS = { blind: { success: 0.25, reward: 0.3 }, shortcut: { success: 0.75, reward: 0.8 } };
/** Findings go from hand to hand as messages of limited size; a module's texts, and what is wrong with it, have no limit. */
const MOST_FINDINGS = 20;
const QUOTED = 300;
const cut = (text: string): string => (text.length > QUOTED ? `${text.slice(0, QUOTED)}…` : text);

/** Runs the self-test on a module's text. */
export async function selfTest({ source }: { source: string }): Promise<SelfTest> {
  const module = openModule({ source });
  const findings: string[] = [];
  try {
    for await (const finding of examine(module)) findings.push(finding);
  } catch (error) {
    if (!(error instanceof SandboxError)) throw error;
    findings.push(`the module fails: ${cut(error.message)}`);
  } finally {
    await module.close();
  }
  const more = findings.splice(MOST_FINDINGS).length;
  if (more > 0) findings.push(`${more} more findings are left out: mend these first`);
  return { passed: findings.length === 0, findings };
}

async function* examine(module: EnvironmentModule): AsyncGenerator<string> {
  const names = await module.exports();
  const missing = REQUIRED_EXPORTS.filter((name) => !names.includes(name));
  if (missing.length > 0) {
    yield `the module does not export ${missing.join(', ')}: export a function under each name`;
    return;
  }
  const { tools } = await module.describe();
  if (tools.length < TOOLS.fewest || tools.length > TOOLS.most)
    yield `describe: ${tools.length} tools: offer ${TOOLS.fewest} to ${TOOLS.most} of the target's`;

  const solved = await Promise.all(SEEDS.map(async (seed) => play(module, { seed, script: await module.solve(seed) })));
  yield* solutions(solved);
  yield* determinism(module, solved);
  yield* diversity(solved);
  yield* observations(solved, tools);
  yield* policies(module, { names, tools, solved });
}

function* solutions(solved: readonly ScriptedEpisode[]): Generator<string> {
  const bad = solved.filter(({ reward }) => reward < SUCCESS);
  const [first] = bad;
  if (first)
    yield (
      `solve: ${bad.length} of ${solved.length} reference solutions score below 1, e.g. seed ${first.seed} with ` +
      `${first.reward} (${cut(JSON.stringify(first.breakdown))}): make solve and reward agree`
    );
  const open = solved.find(({ done }) => !done);
  if (open)
    yield `solve: seed ${open.seed} is not done after the last message: end the episode or add the closing message`;
}

async function* determinism(module: EnvironmentModule, solved: readonly ScriptedEpisode[]): AsyncGenerator<string> {
  for (const before of solved.slice(0, 10)) {
    const again = await play(module, { seed: before.seed, script: await module.solve(before.seed) });
    if (JSON.stringify(again) === JSON.stringify(before)) continue;
    yield `seed ${before.seed} does not give the same bytes twice: draw everything from the seed`;
    return;
  }
}

function* diversity(solved: readonly ScriptedEpisode[]): Generator<string> {
  const distinct = new Set(solved.map(({ start, made }) => JSON.stringify([start, { ...(made as object), seed: 0 }])))
    .size;
  if (distinct < DISTINCT * solved.length)
    yield `make: ${distinct} distinct instances of ${solved.length}: draw more of the instance from the seed (80% must differ)`;
}

function* observations(solved: readonly ScriptedEpisode[], tools: readonly ToolSchema[]): Generator<string> {
  for (const tool of tools) {
    const { outputSchema } = tool;
    if (!outputSchema) continue;
    const shape = shapeOf(outputSchema);
    const wrong = solved
      .flatMap(({ seed, messages }) => resultsOf(messages, tool.name).map((content) => ({ seed, content })))
      .find(({ content }) => !shape.test(content));
    if (wrong)
      yield `step: seed ${wrong.seed}: "${cut(wrong.content)}" of ${cut(tool.name)} does not have the shape of its outputSchema`;
  }
}

/** Records of the schema's values separated by spaces, " ; " between records; what has no vocabulary may be any text. */
function shapeOf({ properties = {} }: JsonSchema): RegExp {
  const record = Object.values(properties).map((schema) => {
    const vocabulary = vocabularyOf(schema);
    return vocabulary ? expressionOf(vocabulary) : '.+';
  });
  const one = `(?:${record.join(' ')})`;
  return new RegExp(`^${one}(?: ; ${one})*$`);
}

function resultsOf(messages: readonly Message[], tool: string): string[] {
  const calls = new Set(
    messages
      .flatMap((m) => (m.role === 'assistant' ? (m.toolCalls ?? []) : []))
      .flatMap((c) => (c.name === tool ? [c.id] : [])),
  );
  return messages.flatMap((m) => (m.role === 'tool' && calls.has(m.toolCallId) ? [m.content] : []));
}

async function* policies(
  module: EnvironmentModule,
  o: { names: readonly string[]; tools: readonly ToolSchema[]; solved: readonly ScriptedEpisode[] },
): AsyncGenerator<string> {
  const scores = (script: (seed: number) => Script): Promise<number[]> =>
    Promise.all(SEEDS.map(async (seed) => (await play(module, { seed, script: script(seed) })).reward));
  for (const { name, script } of trivialPolicies(o)) yield* tooGood(name, await scores(() => script), LIMITS.blind);
  if (!o.names.includes('shortcuts')) return;
  const shortcuts = new Map(
    await Promise.all(SEEDS.map(async (seed) => [seed, await module.shortcuts(seed)] as const)),
  );
  for (const name of Object.keys(shortcuts.get(SEEDS[0] ?? 0) ?? {})) {
    const rewards = await scores((seed) => shortcuts.get(seed)?.[name] ?? []);
    yield* tooGood(`shortcut "${name}"`, rewards, LIMITS.shortcut);
  }
}

function* tooGood(
  name: string,
  rewards: readonly number[],
  limits: { success: number; reward: number },
): Generator<string> {
  const success = rewards.filter((r) => r >= SUCCESS).length / rewards.length;
  const mean = rewards.reduce((a, b) => a + b, 0) / rewards.length;
  if (success >= limits.success || mean >= limits.reward)
    yield (
      `reward: ${cut(name)} succeeds on ${(100 * success).toFixed(0)}% (below ${100 * limits.success}% allowed) with mean reward ` +
      `${mean.toFixed(2)} (below ${limits.reward} allowed): mix in instances on which it is wrong`
    );
}
