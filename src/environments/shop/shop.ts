/**
 * The target environment `shop`: a help desk with a scripted user. Invariant: an episode is a pure function of the task and of the
 * agent's messages; the seed is not used, and episodes share nothing.
 */
import type { Environment, Episode, StepResult, StopReason } from '../../domain/environment';
import type { AssistantMessage, Message } from '../../domain/messages';
import { call, isError } from './database';
import { evaluate } from './reward';
import { completeParameters, versionOf, type ShopParameters } from './parameters';
import { shopTasks, type ShopTask } from './tasks';
import { POLICY, RULES, TEXTS, TOOLS } from './tools';

const MAX_STEPS = 10;
const MAX_ERRORS = 3;

/** Opens an episode of a task that need not be in a split. */
export function openEpisode(task: ShopTask): Episode {
  const db = structuredClone(task.database);
  const texts: string[] = [];
  let steps = 0;
  let errors = 0;

  const answer = (message: AssistantMessage): StepResult => {
    if (message.content.trim() !== '') texts.push(message.content);
    const calls = message.toolCalls ?? [];
    if (calls.length === 0) {
      if (/\baccount\b.*\?/is.test(message.content))
        return { messages: [{ role: 'user', content: TEXTS.account(db.user) }], done: false };
      return { messages: [{ role: 'user', content: TEXTS.bye }], done: true, stopReason: 'user_stop' };
    }
    const messages: Message[] = calls.map((c) => ({ role: 'tool', toolCallId: c.id, content: call(db, c) }));
    errors += messages.filter((m) => isError(m.content)).length;
    return errors >= MAX_ERRORS ? { messages, done: true, stopReason: 'too_many_errors' } : { messages, done: false };
  };

  return {
    start: {
      messages: [
        { role: 'system', content: POLICY },
        { role: 'user', content: task.firstMessage },
      ],
      tools: TOOLS,
      maxSteps: MAX_STEPS,
    },
    step: async (message) => {
      const result = answer(message);
      steps += 1;
      return result.done || steps < MAX_STEPS ? result : { ...result, done: true, stopReason: 'max_steps' };
    },
    evaluate: async (reason: StopReason) => evaluate({ task, final: db, texts, reason }),
    close: async () => {},
  };
}

/** The environment; `version` changes with anything that changes tasks, tools, observations or rewards. */
export function createShop(given: Partial<ShopParameters> = {}): Environment {
  const parameters = completeParameters(given);
  const counts = { train: parameters.trainTasks, test: parameters.testTasks };
  return {
    describe: async () => ({
      name: 'shop',
      version: versionOf(parameters),
      policy: POLICY,
      tools: TOOLS,
      maxSteps: MAX_STEPS,
      hasReference: true,
      rules: RULES,
    }),
    tasks: async (split) => Array.from({ length: counts[split] }, (_, i) => ({ id: `${split}-${i}`, split })),
    reset: async ({ id }) => {
      const task = shopTasks(parameters).get(id);
      if (!task) throw new Error(`shop: unknown task "${id}": use an id from tasks()`);
      return openEpisode(task);
    },
    close: async () => {},
  };
}
