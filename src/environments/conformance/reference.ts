/** Reference actions: tools and arguments as described, and reward 1 for who does them. */
import type { Environment, Reference } from '../../domain/environment';
import type { AssistantMessage } from '../../domain/messages';
import { valueProblem } from '../json-schema';
import { quoted } from '../trouble';
import type { Checked, Sample } from './checked';
import { callsOf, isError, observed, play, say } from './playing';

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
