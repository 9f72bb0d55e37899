/**
 * Reference actions (tools and arguments as described, reward 1 for who does them), and rewards for words alone.
 */
import type { Environment, Reference } from '../../domain/environment';
import type { AssistantMessage } from '../../domain/messages';
import { quoted } from '../connection';
import { valueProblem } from '../json-schema';
import { callsOf, type Checked, isError, observed, play, type Sample, say } from './probe';

/** How often the facts are said to a user who goes on asking. */
const WORDS = 3;

export async function checkReferences(checked: Checked): Promise<void> {
  let actions: number | undefined;
  for (const [n, sample] of checked.samples.entries()) {
    if (n > 1 && !checked.hasTime()) break;
    const reference = sample.untouched?.reference;
    if (!reference) continue;
    actions = (actions ?? 0) + reference.actions.length;
    if (!fits(checked, sample, reference)) return;
    if (checked.isUserPlayed()) continue;
    const problem = await checked.attempt('evaluate (reference actions)', () => unsolved(checked, sample, reference));
    if (problem) return checked.add('evaluate', problem, SOLVED_FIX);
  }
  if (actions === undefined) return;
  if (checked.isUserPlayed())
    checked.note('evaluate', 'reference actions were not played: a simulated user takes part', 'play a task by hand');
  if (actions === 0)
    checked.note('evaluate', 'reference.actions is empty in all sampled tasks', 'tell the writes that a task needs');
}

export const SOLVED_FIX =
  'tell the writes and facts that a solution needs and make the reward 1 for them, or describe hasReference: false';

function fits({ description, add }: Checked, { task }: Sample, { actions }: Reference): boolean {
  for (const [n, { name, arguments: values }] of actions.entries()) {
    const path = `reference.actions.${n}`;
    const tool = description.tools.find((each) => each.name === name);
    const of = `of task ${quoted(task, 60)}`;
    if (!tool) {
      add('evaluate', `${path}.name ${of} is "${quoted(name, 60)}", no tool`, 'name a tool that describe lists');
      return false;
    }
    const problem = valueProblem(tool.parameters, values);
    if (problem !== undefined) {
      const fix = `make the reference and the parameters of ${name} agree`;
      add('evaluate', `${path}.arguments.${quoted(problem)} (${name}, ${of})`, fix);
      return false;
    }
  }
  return true;
}

/** The needed writes, one a message, then the facts. */
export const solution = ({ actions, tell }: Reference): AssistantMessage[] => [
  ...actions.map((action) => callsOf(action)),
  ...Array<AssistantMessage>(WORDS).fill(say([...tell, 'done .'].join(' . '))),
];

/** What came of playing the reference; undefined where that was reward 1. */
export async function unsolved(
  { environment }: { environment: Environment },
  { task }: Pick<Sample, 'task'>,
  reference: Reference,
): Promise<string | undefined> {
  const { results, evaluation } = await play({ environment, task, script: solution(reference) });
  if (!evaluation || evaluation.reward === 1) return undefined;
  const refused = results.map(observed).find(isError);
  const how = [
    `breakdown ${quoted(JSON.stringify(evaluation.breakdown), 200)}`,
    ...(refused === undefined ? [] : [`a reference action was answered "${quoted(refused, 120)}"`]),
    ...(results.length <= reference.actions.length ? [`the episode was over after ${results.length} messages`] : []),
  ];
  return `reward of task ${quoted(task, 60)} is ${evaluation.reward} for its own reference.actions: ${how.join('; ')}`;
}

const NUMBER = 0.3721;
const NUMBERS = [`${NUMBER}`, `reward: ${NUMBER}`, `{"reward": ${NUMBER}}`];
const CLAIMS = ['success', 'reward: 1', '1', 'All done: I have completed the task successfully.'];
/** One task may ask for just these words; not several. */
const TASKS = 3;

export async function checkClaims(checked: Checked): Promise<void> {
  const { environment, attempt, samples, add, hasTime } = checked;
  const open = samples.filter(({ untouched }) => untouched && untouched.reward < 1).slice(0, TASKS);
  const rewardFor = async ({ task }: Sample, words: string) =>
    (await play({ environment, task, script: [say(words)] })).evaluation?.reward ?? 0;

  await attempt('evaluate (words alone)', async () => {
    for (const words of open[0] ? NUMBERS : []) {
      if ((await rewardFor(open[0]!, words)) !== NUMBER) continue;
      add('evaluate', `reward is the number that the agent says ("${words}")`, 'value what was done, not what is said');
      return;
    }
    for (const words of CLAIMS) {
      if (!hasTime()) return;
      const rewards: number[] = [];
      for (const sample of open) rewards.push(await rewardFor(sample, words));
      if (rewards.length === 0 || rewards.some((reward) => reward < 1)) continue;
      const problem = `reward is 1 on ${rewards.length} sampled tasks for an agent that only says "${words}"`;
      return add('evaluate', problem, 'value what was done, not what is said');
    }
  });
  if (hasTime()) await noteEcho(checked, open, rewardFor);
}

async function noteEcho(
  { attempt, note }: Checked,
  open: readonly Sample[],
  rewardFor: (sample: Sample, words: string) => Promise<number>,
): Promise<void> {
  await attempt("evaluate (the user's words repeated)", async () => {
    let perfect = 0;
    for (const sample of open) {
      const { messages } = sample.start as { messages: { role: string; content: string }[] };
      const asked = messages.findLast(({ role }) => role === 'user')?.content ?? '';
      perfect += (await rewardFor(sample, asked)) === 1 ? 1 : 0;
    }
    if (perfect > 0 && perfect === open.length)
      note(
        'evaluate',
        `reward is 1 on ${perfect} sampled tasks for an agent that repeats the user's words`,
        'see that the request does not hold what the agent is to find out',
      );
  });
}
