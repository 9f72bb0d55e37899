/** The shop's reference agent as a scripted policy; the seed of the first turn decides which mistakes it makes. */
import { random } from '../../examples/shop/target/random';
import { agentMessages } from '../../examples/shop/target/reference-agent';
import { shopTasks } from '../../examples/shop/target/shop';
import { type ShopTask, SKILLS } from '../../examples/shop/target/tasks';
import type { AssistantMessage } from '../../src/domain/messages';
import { scriptedPolicy, turnOf, type ScriptedPolicy } from './scripted-policy';

/** Lacks each skill with probability `lack`, by task: 0 solves every task. */
export function shopAgent({ lack }: { lack: number }): ScriptedPolicy {
  const byFirstMessage = new Map<string, ShopTask>();
  for (const task of shopTasks().values()) byFirstMessage.set(task.firstMessage, task);
  const scripts = new Map<string, AssistantMessage[]>();

  function script(task: ShopTask): AssistantMessage[] {
    const known = scripts.get(task.id);
    if (known) return known;
    const rng = random(task.id);
    const lacks = new Set(SKILLS.filter(() => rng.chance(lack)));
    const messages = [...agentMessages({ task, lacks, rng })];
    scripts.set(task.id, messages);
    return messages;
  }

  return scriptedPolicy(({ messages }) => {
    const task = byFirstMessage.get(messages.find(({ role }) => role === 'user')!.content)!;
    return script(task)[turnOf(messages)] ?? { role: 'assistant', content: 'bye' };
  });
}
