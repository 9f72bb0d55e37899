/** The conformance checks that play episodes. Invariant: each opens its own and closes them again. */
import { isDeepStrictEqual } from 'node:util';
import {
  evaluationSchema,
  resetResultSchema,
  stepResultSchema,
  type Environment,
  type EnvironmentDescription,
  type Episode,
  type Evaluation,
} from '../domain/environment';
import type { AssistantMessage } from '../domain/messages';
import { attempt, type Add } from './finding';
import { firstIssue } from './protocol';

export interface Checked {
  environment: Environment;
  /** Of the train split. */
  task: string;
  description: EnvironmentDescription;
  add: Add;
}

const SEED = 1;
const PARALLEL_EPISODES = 8;
/** Enough turns to see state grow, few enough not to meet an environment's limit of errors in each check. */
const NONSENSE_TURNS = 3;

/** The first messages: their shape, that they depend on task and seed alone, and that an unknown task is refused. */
export async function checkReset({ environment, task, description, add }: Checked): Promise<void> {
  const starts = await attempt('reset', add, async () => {
    const episodes = [
      await environment.reset({ id: task, seed: SEED }),
      await environment.reset({ id: task, seed: SEED }),
    ];
    await Promise.all(episodes.map((episode) => episode.close()));
    return episodes.map(({ start }) => start);
  });
  if (!starts) return;
  const [start] = starts as [Episode['start']];
  const parsed = resetResultSchema.safeParse(start);
  if (!parsed.success) return add('reset', firstIssue(parsed.error), 'return this field in the shape of the protocol');
  if (JSON.stringify(starts[0]) !== JSON.stringify(starts[1])) {
    add(
      'reset',
      `task ${task} begins differently when reset twice with seed ${SEED}`,
      'draw everything random from task and seed',
    );
  }
  if (start.messages.at(-1)?.role !== 'user')
    add('reset', 'the first messages do not end with a user message', 'let the user speak first');
  if (start.messages[0]?.role !== 'system')
    add('reset', 'the first message is not the system message', 'begin with the policy');
  const offered = start.tools.map(({ name }) => name);
  const undescribed = offered.filter((name) => !description.tools.some((tool) => tool.name === name));
  if (undescribed.length > 0) add('reset', `offers ${undescribed.join(', ')}`, 'offer only tools that describe lists');
  await environment.reset({ id: 'no such task', seed: SEED }).then(
    () => add('reset', 'an unknown task is begun as if it were one', 'answer with an error that names the task'),
    () => undefined,
  );
}

/** A call with the id that its answer must carry. */
const callOf = (name: string, values: Record<string, unknown>): AssistantMessage => {
  return { role: 'assistant', content: '', toolCalls: [{ id: 'call_0', name, arguments: values }] };
};

/** Mistakes that every policy makes now and then. Each must be answered, as it would be by a person or a program. */
function nonsense({ tools }: EnvironmentDescription): [what: string, message: AssistantMessage][] {
  const name = tools[0]?.name ?? 'tool';
  return [
    ['a call of an unknown tool', callOf('no_such_tool', {})],
    ['a call without arguments', callOf(name, {})],
    [
      'a call with arguments of a wrong type',
      callOf(name, { ...everyField(tools[0]), unexpected: { nested: [null] } }),
    ],
    ['a message without text or calls', { role: 'assistant', content: '' }],
  ];
}

const everyField = (tool: EnvironmentDescription['tools'][number] | undefined) =>
  Object.fromEntries(Object.keys(tool?.parameters.properties ?? {}).map((field) => [field, ['wrong']]));

/** The agent's mistakes must be answered, not be errors. */
export async function checkBadCalls({ environment, task, description, add }: Checked): Promise<void> {
  for (const [what, message] of nonsense(description)) {
    await attempt(`step: ${what}`, add, async () => {
      const episode = await environment.reset({ id: task, seed: SEED });
      const result = await episode.step(message);
      await episode.close();
      const parsed = stepResultSchema.safeParse(result);
      if (!parsed.success) return add(`step: ${what}`, firstIssue(parsed.error), 'return {messages, done}');
      const calls = message.toolCalls ?? [];
      const answered = result.messages.filter((answer) => answer.role === 'tool').map((answer) => answer.toolCallId);
      if (calls.length > 0 && !result.done && !answered.includes('call_0')) {
        add(
          `step: ${what}`,
          'no tool message answers it',
          'answer each call with a tool message that has its id, e.g. "error : ..."',
        );
      }
      if (calls.length === 0 && !result.done && result.messages.length === 0) {
        add(`step: ${what}`, 'nothing answers it and the episode goes on', 'let the user answer, or end the episode');
      }
    });
  }
}

/** Reward and reference of an episode in which nothing was done. */
export async function checkEvaluation({ environment, task, description, add }: Checked): Promise<void> {
  const evaluation = await attempt('evaluate', add, async () => {
    const episode = await environment.reset({ id: task, seed: SEED });
    const result = await episode.evaluate('agent_stop');
    await episode.close();
    return result;
  });
  if (!evaluation) return;
  const parsed = evaluationSchema.safeParse(evaluation);
  if (!parsed.success)
    return add('evaluate', firstIssue(parsed.error), 'return a finite reward in [0, 1] and a breakdown of numbers');
  if (description.hasReference && !evaluation.reference) {
    add(
      'evaluate',
      'hasReference is true, but there is no reference',
      'return {actions, tell}, or describe hasReference: false',
    );
  }
}

/** The same nonsense in one episode alone and in several side by side must be answered and valued in the same way. */
export async function checkParallel({ environment, task, description, add }: Checked): Promise<void> {
  const play = async (): Promise<{ results: unknown[]; evaluation: Evaluation }> => {
    const episode = await environment.reset({ id: task, seed: SEED });
    const results: unknown[] = [];
    for (const [, message] of nonsense(description).slice(0, NONSENSE_TURNS)) {
      const result = await episode.step(message);
      results.push(result);
      if (result.done) break;
    }
    const evaluation = await episode.evaluate('agent_stop');
    await episode.close();
    return { results, evaluation };
  };
  await attempt('parallel episodes', add, async () => {
    const alone = await play();
    const together = await Promise.all(Array.from({ length: PARALLEL_EPISODES }, play));
    if (!together.every((played) => isDeepStrictEqual(played, alone))) {
      const problem = `${PARALLEL_EPISODES} equal episodes side by side do not go as one alone does`;
      add('parallel episodes', problem, 'keep all state in the episode, and draw nothing from a shared source');
    }
  });
}
