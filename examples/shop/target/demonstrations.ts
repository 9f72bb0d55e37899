/**
 * Writes SFT demonstrations in `shop` as JSON lines: first {"environment", "words"}, then one {"messages", "skills", "mistakes",
 * "reward"} a demonstration. Invariant: no demonstration has the first message of a `test` task; each is played in the real
 * environment, and its reward is 1 exactly if no mistake was made.
 *
 *   demonstrations --count 20000 --seed 1 --lack refuse=0.75 --lack tell=0.75
 */
import { once } from 'node:events';
import { parseArgs } from 'node:util';
import { random } from './in-process';
import { demonstrate } from './reference-agent';
import { createShop } from './shop';
import { type ShopTask, type Skill, SKILLS, taskStream, TEXTS } from './tasks';

interface DemonstrationOptions {
  count: number;
  seed: number;
  /** Per skill, the probability that a demonstration whose task carries it makes the mistake. */
  lacks: Partial<Record<Skill, number>>;
}

const isSkill = (name: string): name is Skill => (SKILLS as readonly string[]).includes(name);

/** Parses `NAME=FRACTION` options. Throws a one-line error that names the option, its value and what is right. */
export function parseLacks(values: readonly string[]): Partial<Record<Skill, number>> {
  const lacks: Partial<Record<Skill, number>> = {};
  for (const value of values) {
    const [name = '', fraction = ''] = value.split('=');
    const number = Number(fraction);
    if (!isSkill(name)) throw new Error(`--lack "${value}": no skill "${name}"; use one of ${SKILLS.join(', ')}`);
    if (fraction === '' || !(number >= 0 && number <= 1))
      throw new Error(`--lack "${value}": write NAME=FRACTION with a fraction from 0 to 1`);
    lacks[name] = number;
  }
  return lacks;
}

/** The lines of the output, as objects. */
export async function* demonstrations(o: DemonstrationOptions): AsyncGenerator<unknown> {
  const texts = Object.values(TEXTS).filter((t) => typeof t === 'string');
  yield { environment: await createShop().describe(), words: texts };
  const source = taskStream({ stream: `demonstration-${o.seed}`, split: 'train' });
  const rng = random(`mistakes ${o.seed}`);
  for (let i = 0; i < o.count; i++) {
    const task = source.next().value as ShopTask;
    const mistakes = task.skills.filter((skill) => rng.chance(o.lacks[skill] ?? 0));
    const { messages, evaluation } = await demonstrate({ task, lacks: new Set(mistakes), rng });
    yield { messages, skills: task.skills, mistakes, reward: evaluation.reward };
  }
}

function parseOptions(argv: string[]): DemonstrationOptions {
  const { values } = parseArgs({
    args: argv,
    options: {
      count: { type: 'string', default: '1000' },
      seed: { type: 'string', default: '1' },
      lack: { type: 'string', multiple: true, default: [] },
    },
  });
  const whole = (name: 'count' | 'seed'): number => {
    const number = Number(values[name]);
    if (!Number.isInteger(number) || number < 0) throw new Error(`--${name} "${values[name]}": use a whole number`);
    return number;
  };
  return { count: whole('count'), seed: whole('seed'), lacks: parseLacks(values.lack) };
}

async function main(): Promise<void> {
  for await (const line of demonstrations(parseOptions(process.argv.slice(2)))) {
    if (!process.stdout.write(`${JSON.stringify(line)}\n`)) await once(process.stdout, 'drain');
  }
}

if (require.main === module) {
  main().catch((error: unknown) => {
    process.stderr.write(`demonstrations: ${error instanceof Error ? error.message : String(error)}\n`);
    process.exitCode = 1;
  });
}
