/** Rewards that words alone get: what the agent claims is no evidence. */
import type { Checked, Sample } from './checked';
import { play, say } from './playing';

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
