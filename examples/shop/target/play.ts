/**
 * Plays the shop for the base-model script, over JSON lines on stdin and stdout:
 * {"demonstrations":{"count":9,"seed":1,"lacks":{"refuse":0.75}}} -> {"environment","words","demonstrations":[{"messages",..}]}
 * {"tasks":{"count":400}} -> {"tasks":[{"id","skills"}]}, of the train split
 * {"reset":{"episode":0,"task":"train-3"}} -> {"messages":[..]}
 * {"step":{"episode":0,"message":{..assistant..}}} -> {"messages":[..],"done":false} or {..,"done":true,"evaluation":{..}}
 */
import { createInterface } from 'node:readline';
import type { AssistantMessage, Episode } from 'trace-campaign/plugin';
import { random } from './random';
import { demonstrate } from './reference-agent';
import { createShop, openEpisode, shopTasks } from './shop';
import { type ShopTask, type Skill, taskStream, TEXTS } from './tasks';

type Request =
  | { demonstrations: Demonstrations }
  | { tasks: { count: number } }
  | { reset: { episode: number; task: string } }
  | { step: { episode: number; message: AssistantMessage } };

/** `lacks`: by skill, the probability that a demonstration whose task carries it makes the characteristic mistake. */
interface Demonstrations {
  count: number;
  seed: number;
  lacks: Partial<Record<Skill, number>>;
}

const episodes = new Map<number, Episode>();

/** The rollouts are of train tasks alone, each played in the real environment. `words` are those that schemas and policy do not spell. */
async function demonstrations({ count, seed, lacks }: Demonstrations) {
  const source = taskStream(`demonstration-${seed}`, 'train');
  const rng = random(`mistakes ${seed}`);
  const made = [];
  for (let i = 0; i < count; i++) {
    const task = source.next().value as ShopTask;
    const mistakes = task.skills.filter((skill) => rng.chance(lacks[skill] ?? 0));
    made.push(await demonstrate({ task, lacks: new Set(mistakes), rng }));
  }
  const words = Object.values(TEXTS).filter((text) => typeof text === 'string');
  return { environment: await createShop().describe(), words, demonstrations: made };
}

async function answer(request: Request): Promise<unknown> {
  if ('demonstrations' in request) return demonstrations(request.demonstrations);
  if ('tasks' in request) {
    const train = [...shopTasks().values()].slice(0, request.tasks.count);
    return { tasks: train.map(({ id, skills }) => ({ id, skills })) };
  }
  if ('reset' in request) {
    const episode = openEpisode(shopTasks().get(request.reset.task)!);
    episodes.set(request.reset.episode, episode);
    return { messages: episode.start.messages };
  }
  const { episode: number, message } = request.step;
  const episode = episodes.get(number)!;
  const result = await episode.step(message);
  if (!result.done) return result;
  episodes.delete(number);
  return { ...result, evaluation: await episode.evaluate(result.stopReason ?? 'user_stop') };
}

async function main(): Promise<void> {
  for await (const line of createInterface({ input: process.stdin }))
    process.stdout.write(`${JSON.stringify(await answer(JSON.parse(line) as Request))}\n`);
}

void main();
