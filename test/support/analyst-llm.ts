/** Trajectories and a language model that answers by a function, for the analyst that asks one. */
import { analystWith } from '../../src/analyst/llm/llm';
import { LENGTHS } from '../../src/domain/transcript';
import type { EnvironmentDescription } from '../../src/domain/environment';
import type { Message } from '../../src/domain/messages';
import type { ScoredRollout } from '../../src/domain/rollout';
import type { Asking, Question } from '../../src/llm/model';
import { fenced as json } from './model-endpoint';
import { noLedger } from './memory-ledger';
import { scoredRollout } from './scored-rollout';

/** The key says task and attempt; messages 1 to `turns` follow the policy. */
export function trajectory(o: {
  task: string;
  attempt?: number;
  passed: boolean;
  turns?: number;
  words?: string;
  messages?: Message[];
}): ScoredRollout {
  const { task, attempt = 0, passed, turns = 4, words = 'words' } = o;
  const said = Array.from({ length: turns }, (_, n): Message => ({
    role: n % 2 === 0 ? 'user' : 'assistant',
    content: `${words} ${n + 1}`,
  }));
  return scoredRollout({
    ...{ name: task, key: `key-${task}-${attempt}`, task, attempt, reward: passed ? 1 : 0.25 },
    messages: o.messages ?? [{ role: 'system', content: 'The policy.' }, ...said],
    stopReason: 'user_stop',
    steps: 2,
  });
}

export const description: EnvironmentDescription = {
  name: 'flights',
  version: '1',
  policy: 'Ask before you book.',
  tools: [
    {
      name: 'find_flight',
      description: 'finds one',
      parameters: { type: 'object', properties: { day: { type: 'string' } } },
      annotations: { readOnlyHint: true },
    },
  ],
  maxSteps: 10,
  hasReference: false,
};

export { json };

/** `answer` is given the question's last message; `questions` grows. */
export function analystAsking(
  answer: (asked: string, question: Question) => unknown,
  options: Partial<Parameters<typeof analystWith>[0]> = {},
) {
  const questions: Question[] = [];
  const askings: Asking[] = [];
  const told: string[] = [];
  const analyst = analystWith(
    {
      model: {
        id: { model: 'fake' },
        async ask(question, asking) {
          questions.push(question);
          askings.push(asking);
          const given = answer(question.messages.at(-1)?.content ?? '', question);
          const text = typeof given === 'string' ? given : json(given);
          return { text, finish: 'stop', usage: { promptTokens: 1, cachedTokens: 0, completionTokens: 1 } };
        },
      },
      contextTokens: 128_000,
      maxTokens: 32_000,
      concurrency: 8,
      chunkTokens: 60_000,
      labelsPerChunk: 40,
      lengths: LENGTHS,
      repairs: 1,
      ...options,
    },
    { kind: 'llm', version: '1' },
  );
  const work = {
    progress: (done: number, total: number) => void told.push(`${done}/${total}`),
    signal: new AbortController().signal,
    ledger: noLedger,
    seed: 7,
    description,
  };
  return { analyst, questions, askings, told, work };
}
