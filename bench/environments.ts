/**
 * Episodes of synthesized environments a core-second: four steps, reward and reference, for a module of every generator on `shop`.
 *
 *   node -r ./test/support/register.cjs bench/environments.ts
 *
 * Core-seconds are those of the whole process, threads of the sandbox included. Prints one JSON object.
 */
import type { AssistantMessage } from '../src/domain/messages';
import { openModule, type EnvironmentModule, sandboxEnvironment } from '../src/sandbox/module';
import { capabilityNames, generate, shopTarget } from '../test/fixtures/synthesis/generate';

const SECONDS = 5;
const CONCURRENCY = 32;
const WARM_UP = 50;
const STEPS = 4;

type Played = Awaited<ReturnType<typeof sandboxEnvironment>>;

/** The solution's first look-up over and over, and words at last: as many steps in every class, none of which ends the episode early. */
async function scriptOf(module: EnvironmentModule, seed: number): Promise<AssistantMessage[]> {
  const calls = (await module.solve(seed)).find(({ toolCalls }) => toolCalls?.length);
  if (!calls) throw new Error(`the solution of seed ${seed} calls no tool`);
  return [...Array.from({ length: STEPS - 1 }, () => calls), { role: 'assistant', content: 'that is all .' }];
}

async function play(environment: Played, seed: number, script: readonly AssistantMessage[]): Promise<void> {
  const episode = await environment.reset({ id: `seed-${seed}`, seed: 0 });
  for (const message of script) if ((await episode.step(message)).done) break;
  await episode.evaluate('user_stop');
  await episode.close();
}

async function measure(source: string) {
  const module = openModule({ source });
  const environment = await sandboxEnvironment({ module, version: 'f'.repeat(64) });
  const scripts = new Map<number, AssistantMessage[]>();
  for (let seed = 0; seed < WARM_UP; seed++) scripts.set(seed, await scriptOf(module, seed));
  for (let round = 0; round < 10; round++) for (const [seed, script] of scripts) await play(environment, seed, script);
  const [cpu, started] = [process.cpuUsage(), performance.now()];
  let episodes = 0;
  const worker = async (): Promise<void> => {
    while (performance.now() - started < SECONDS * 1000) {
      const seed = episodes++ % WARM_UP;
      await play(environment, seed, scripts.get(seed)!);
    }
  };
  await Promise.all(Array.from({ length: CONCURRENCY }, worker));
  const { user, system } = process.cpuUsage(cpu);
  await environment.close();
  return {
    episodesPerCoreSecond: Math.round(episodes / ((user + system) / 1e6)),
    episodesPerSecond: Math.round(episodes / SECONDS),
  };
}

void (async () => {
  const { description, rollouts } = await shopTarget();
  const classes: Record<string, unknown> = {};
  // The first one pays for compiling the host's own code.
  await measure((await generate('tell_requested_information', description, { rollouts })).source);
  for (const name of capabilityNames)
    classes[name] = await measure((await generate(name, description, { rollouts })).source);
  console.log(JSON.stringify({ concurrency: CONCURRENCY, steps: STEPS, classes }, null, 2));
})();
