/**
 * Plays the shop for the base-model script, over JSON lines on stdin and stdout, and tells each task's skills:
 * {"tasks":{"stream":"train","split":"train","count":400}} -> {"tasks":[{"id","skills"}]}
 * {"reset":{"episode":0,"task":"train-3"}} -> {"messages":[..]}
 * {"step":{"episode":0,"message":{..assistant..}}} -> {"messages":[..],"done":false} or {..,"done":true,"evaluation":{..}}
 */
import { createInterface } from 'node:readline';
import { type Episode, messageSchema, splitSchema, z } from 'campaign/plugin';
import { openEpisode } from './shop';
import { drawTasks, type ShopTask } from './tasks';

const requestSchema = z.union([
  z.object({ tasks: z.object({ stream: z.string(), split: splitSchema, count: z.number().int().positive() }) }),
  z.object({ reset: z.object({ episode: z.number(), task: z.string() }) }),
  z.object({ step: z.object({ episode: z.number(), message: messageSchema }) }),
]);

export function createPlayer(): (line: unknown) => Promise<unknown> {
  const tasks = new Map<string, ShopTask>();
  const episodes = new Map<number, Episode>();
  return async (line) => {
    const request = requestSchema.parse(line);
    if ('tasks' in request) {
      const listed = drawTasks(request.tasks);
      for (const task of listed) tasks.set(task.id, task);
      return { tasks: listed.map(({ id, skills }) => ({ id, skills })) };
    }
    if ('reset' in request) {
      const task = tasks.get(request.reset.task);
      if (!task) throw new Error(`play: unknown task "${request.reset.task}": list its stream with "tasks" first`);
      const episode = openEpisode(task);
      episodes.set(request.reset.episode, episode);
      return { messages: episode.start.messages };
    }
    const { episode: number, message } = request.step;
    const episode = episodes.get(number);
    if (!episode || message.role !== 'assistant')
      throw new Error(`play: episode ${number} is not open, or the message is not the assistant's`);
    const result = await episode.step(message);
    if (!result.done) return result;
    episodes.delete(number);
    return { ...result, evaluation: await episode.evaluate(result.stopReason ?? 'user_stop') };
  };
}

async function main(): Promise<void> {
  const play = createPlayer();
  for await (const line of createInterface({ input: process.stdin })) {
    process.stdout.write(`${JSON.stringify(await play(JSON.parse(line)))}\n`);
  }
}

if (require.main === module) void main();
