/** `reset` and an `evaluate` right after it: shapes, that they depend on task and seed alone, and that an unknown task is refused. */
import {
  evaluationSchema,
  resetResultSchema,
  type Environment,
  type Evaluation,
  type ResetResult,
} from '../../domain/environment';
import { holdsWords } from '../../sandbox/hint-checks';
import { firstIssue } from '../protocol';
import type { Checked } from './checked';
import { firstDifference } from './difference';
import { SEED, valued, withEpisode } from './playing';
import { quoted } from '../trouble';

export async function checkStarts({
  environment,
  description,
  samples,
  add,
  attempt,
  hasTime,
}: Checked): Promise<void> {
  for (const [n, sample] of samples.entries()) {
    if (n > 1 && !hasTime()) break;
    const { task } = sample;
    const starts = await attempt('reset', async () => [
      await startOf({ environment, task }),
      await startOf({ environment, task }),
    ]);
    if (!starts) continue;
    const [start] = starts as [ResetResult, ResetResult];
    sample.start = start;
    const parsed = resetResultSchema.safeParse(start);
    if (!parsed.success) {
      add('reset', firstIssue(parsed.error), 'return this field in the shape of the protocol');
      return;
    }
    const difference = firstDifference(...(starts as [ResetResult, ResetResult]));
    checkStart(start, description, add);
    if (difference === undefined) continue;
    const problem = `task ${quoted(task, 60)} begins differently when reset twice with seed ${SEED}: ${difference}`;
    add('reset', problem, 'draw everything random from task and seed');
    break;
  }
  await environment.reset({ id: 'no such task', seed: SEED }).then(
    async (episode) => {
      add('reset', 'an unknown task.id is begun as if it were one', 'answer with an error that names the task');
      await episode.close().catch(() => undefined);
    },
    () => undefined,
  );
}

export const startOf = (o: { environment: Environment; task: string }): Promise<ResetResult> =>
  withEpisode(o, async ({ start }) => start);

function checkStart(start: ResetResult, description: Checked['description'], add: Checked['add']): void {
  if (start.messages.at(-1)?.role !== 'user')
    add('reset', 'messages do not end with a user message', 'let the user speak first');
  if (start.messages[0]?.role !== 'system')
    add('reset', 'messages do not begin with the system message', 'begin with the policy');
  const offered = start.tools.map(({ name }) => name);
  const undescribed = offered.filter((name) => !description.tools.some((tool) => tool.name === name));
  if (undescribed.length > 0)
    add('reset', `tools offers ${quoted(undescribed.join(', '))}`, 'offer only tools that describe lists');
  const { hint } = start;
  const called = hint === undefined ? [] : offered.filter((name) => holdsWords(hint, name));
  if (called.length > 0)
    add(
      'reset',
      `hint names the tool ${quoted(called.join(', '))}`,
      'say what kind of thing to do, and leave calls to the agent',
    );
}

/** Reward and reference of an episode in which nothing was done. */
export async function checkUntouched(checked: Checked): Promise<void> {
  const { environment, description, samples, add, note, attempt, hasTime } = checked;
  let judged = 0;
  for (const [n, sample] of samples.entries()) {
    if (n > 1 && !hasTime()) break;
    const valued = await attempt('evaluate', async () => ({
      evaluation: await untouched({ environment, task: sample.task }),
    }));
    if (!valued) continue;
    const { evaluation } = valued;
    if (!evaluation) {
      judged++;
      continue;
    }
    const parsed = evaluationSchema.safeParse(evaluation);
    if (!parsed.success) {
      add('evaluate', firstIssue(parsed.error), 'return a finite reward in [0, 1] and a breakdown of numbers');
      return;
    }
    sample.untouched = parsed.data;
    if (description.hasReference && !evaluation.reference) {
      add(
        'evaluate',
        `reference is missing for task ${quoted(sample.task, 60)}, and hasReference is true`,
        'return {actions, tell}, or describe hasReference: false',
      );
      return;
    }
  }
  if (judged > 0)
    note(
      'evaluate',
      `${judged} of ${samples.length} sampled tasks need a judge, which the checks have not`,
      'look at their rewards in a run',
    );
  checkIdle(checked, judged);
}

export const untouched = (o: { environment: Environment; task: string }): Promise<Evaluation | undefined> =>
  withEpisode(o, (episode) => valued(episode, 'agent_stop'));

/** Where doing nothing is right in every task, no agent fails and there is nothing to learn. */
function checkIdle({ add, note, samples }: Checked, judged: number): void {
  const rewards = samples.flatMap((sample) => (sample.untouched ? [sample.untouched.reward] : []));
  const perfect = rewards.filter((reward) => reward === 1).length;
  if (perfect > 0)
    (judged === 0 && perfect === rewards.length ? add : note)(
      'evaluate',
      `an agent that does nothing has reward 1 on ${perfect} of ${rewards.length} sampled tasks`,
      'see that something is wanted of the agent in most tasks',
    );
}
