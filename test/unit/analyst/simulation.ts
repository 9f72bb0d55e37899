/**
 * Rollouts in `shop` by its scripted agent with planted lacks and noise: what a sampled base model with known lacks looks like. Invariant:
 * every trajectory is played in the real environment, so reward and reference are the environment's own.
 */
import type { AssistantMessage, Message } from '../../../src/domain/messages';
import type { ScoredRollout } from '../../../src/domain/rollout';
import { random, type Random } from '../../../examples/shop/target/in-process';
import { agentMessages } from '../../../examples/shop/target/reference-agent';
import { openEpisode, shopTasks } from '../../../examples/shop/target/shop';
import { type ShopTask, type Skill, COLORS } from '../../../examples/shop/target/tasks';

const code = (letter: string, rng: Random) => `${letter}${String(rng.below(100)).padStart(2, '0')}`;

/** A slip of a tiny sampled model: a wrong token, a lost or a needless turn. Undefined: the turn is skipped. */
function slip(message: AssistantMessage, seen: Message[], rng: Random): AssistantMessage | undefined {
  const [call] = message.toolCalls ?? [];
  if (!call) {
    const texts = ['done .', 'not allowed .', message.content.replace(/\d+/, String(5 * rng.below(19)))];
    return { ...message, content: rng.pick(texts) };
  }
  const change = (args: Record<string, unknown>) => ({
    ...message,
    toolCalls: [{ ...call, arguments: { ...call.arguments, ...args } }],
  });
  const observed = seen.flatMap((m) => (m.role === 'tool' ? [...m.content.matchAll(/(\w+ \w+) (i\d\d)/g)] : []));
  const names = Object.keys(call.arguments);
  const options: (() => AssistantMessage | undefined)[] = [
    () => undefined,
    () => ({ role: 'assistant', content: 'done .' }),
    () => ({ role: 'assistant', content: 'not allowed .' }),
    () => change(names.includes('id') ? { id: code('i', rng) } : { user: code('u', rng) }),
    () =>
      change(names.includes('item') ? { item: String(call.arguments['item']).replace(/^\w+/, rng.pick(COLORS)) } : {}),
    () => change(names.includes('refund') ? { refund: 5 + 5 * rng.below(19) } : {}),
    () => {
      // Another record, copied as a whole.
      const record = observed.length > 0 && names.includes('id') ? rng.pick(observed) : undefined;
      return change(record ? { item: record[1], id: record[2] } : {});
    },
    () => ({ role: 'assistant', content: `${call.name}(item="` }),
  ];
  return rng.pick(options)();
}

interface Planted {
  lacks: readonly Skill[];
  /** Chance that a lack shows in a task that needs the skill. */
  fraction: number;
  /** Chance of a slip in each of the agent's turns. */
  noise: number;
}

async function rollout(o: Planted & { task: ShopTask; attempt: number; rng: Random }): Promise<ScoredRollout> {
  const { task, attempt, lacks, fraction, noise, rng } = o;
  const mistakes = new Set(lacks.filter((skill) => task.skills.includes(skill) && rng.chance(fraction)));
  const episode = openEpisode(task);
  const messages: Message[] = [...episode.start.messages];
  let stopReason: ScoredRollout['stopReason'] | undefined;
  const planned = [...agentMessages({ task, lacks: mistakes, rng }), { role: 'assistant' as const, content: 'done .' }];
  for (const turn of planned) {
    const message = rng.chance(noise) ? slip(turn, messages, rng) : turn;
    if (!message) continue;
    messages.push(message);
    const result = await episode.step(message);
    messages.push(...result.messages);
    if (result.done) {
      stopReason = result.stopReason;
      break;
    }
  }
  const evaluation = await episode.evaluate(stopReason ?? 'max_steps');
  return {
    ...{ status: 'scored', key: `${task.id}/${attempt}`, task: task.id, attempt, messages },
    ...{ stopReason: stopReason ?? 'max_steps', ...evaluation, rows: [] },
    steps: messages.filter((m) => m.role === 'assistant').length,
    usage: { promptTokens: 0, completionTokens: 0 },
    seconds: 0,
  };
}

/** `count` rollouts on train tasks by a base that lacks some skills. */
export async function rollouts(
  o: Partial<Planted> & { lacks: readonly Skill[]; seed: number; count?: number },
): Promise<ScoredRollout[]> {
  const { lacks, seed, count = 400, fraction = 0.75, noise = 0.03 } = o;
  const rng = random(`analyst ${seed} ${lacks.join(' ')}`);
  const tasks = [...shopTasks().values()].filter((task) => task.id.startsWith('train'));
  return Promise.all(
    Array.from({ length: count }, (_, i) => {
      const task = tasks[i % tasks.length] as ShopTask;
      return rollout({ task, attempt: Math.floor(i / tasks.length), lacks, fraction, noise, rng });
    }),
  );
}
