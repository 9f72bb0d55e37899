/**
 * GEPA behind its activity, with the real engine and store: after a kill at any moment nothing is evaluated twice, the cap holds, and the result
 * is that of an undisturbed run.
 */
import { spawn } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { TrainingResult } from '../../src/domain/results';
import { startChatServer, type ChatServer } from '../support/chat-server';
import { streamed } from '../support/model-endpoint';
import { ROLLOUTS } from '../support/search-worker';
import { newFolder } from '../support/temporary-folder';

/** Stands for the reflection model and is written for this test: what it is shown, and one `add` more. */
const replyByTest = (question: string): string => `\`\`\`\n${question.split('```')[1]!.trim()} add\n\`\`\``;

let home: string;
let server: ChatServer;
/** Called with the number of the question before it is answered. */
let onQuestion: (n: number) => void;
beforeEach(async () => {
  home = newFolder();
  onQuestion = () => undefined;
  server = await startChatServer((body, response) => {
    onQuestion(server.requests.length);
    return streamed(replyByTest(body.messages.at(-1)!.content))(body, response);
  });
});
afterEach(() => server.close());

/** One attempt of the activity in a process of its own; undefined if it did not come to a result. */
function attempt(
  o: { killAt?: number; tokens?: number; started?: (kill: () => void) => void } = {},
): Promise<TrainingResult | undefined> {
  const script = ['-r', './test/support/register.cjs', 'test/support/search-worker.ts'];
  const child = spawn(process.execPath, [...script, home, server.url, String(o.killAt ?? -1), String(o.tokens ?? '')]);
  o.started?.(() => child.kill('SIGKILL'));
  let [said, problem] = ['', ''];
  child.stdout.on('data', (text: Buffer) => (said += text.toString()));
  child.stderr.on('data', (text: Buffer) => (problem += text.toString()));
  return new Promise((done, failed) =>
    child.once('close', (code, signal) => {
      if (code === 0) done(JSON.parse(said) as TrainingResult);
      else if (signal === 'SIGKILL' || problem.includes('TrainerDied') || problem.includes('without a word'))
        done(undefined);
      else failed(new Error(problem));
    }),
  );
}

const evaluated = () => readFileSync(join(home, 'evaluated'), 'utf8').trim().split('\n');
const questions = () => server.requests.map(({ body }) => JSON.stringify([body.messages, body['seed']]));
const twice = (all: string[]) => all.filter((one, n) => all.indexOf(one) !== n);
/** The learner's own process: it writes its id beside its files. */
const killLearner = (): void => {
  const folder = join(home, 'trainings', 'searches');
  process.kill(Number(readFileSync(join(folder, readdirSync(folder)[0]!, '.lock'), 'utf8')), 'SIGKILL');
};

test('killed at any moment and run again, it evaluates nothing twice, stays within its cap and has the same result', async () => {
  const whole = (await attempt())!;
  const [made, asked] = [evaluated(), questions()];
  expect(twice(made)).toEqual([]);
  expect(made.length).toBeLessThanOrEqual(ROLLOUTS);
  expect(made.length).toBeGreaterThan(ROLLOUTS - 8);
  expect(asked.length).toBeGreaterThan(3);
  // From the base model without a prompt to one that adds often; each was better than all before.
  expect(whole.checkpoints[0]!.policy).toEqual({ base: 'base@1', adapters: [] });
  const adds = whole.checkpoints.map(({ policy }) => (policy.prompt?.text.match(/add/g) ?? []).length);
  expect(adds.length).toBeGreaterThan(2);
  expect([...adds].sort((a, b) => a - b)).toEqual(adds);
  expect(whole.checkpoints.map(({ rollouts }) => rollouts)).toEqual(
    [...whole.checkpoints].sort((a, b) => a.rollouts! - b.rollouts!).map(({ rollouts }) => rollouts),
  );
  // Those of the base model as it is are the campaign's base rollouts.
  const ofBase = made.filter((one) => (JSON.parse(one) as { prompt: string }).prompt === '').length;
  expect(ofBase).toBeGreaterThan(0);
  expect(whole).toMatchObject({ rollouts: made.length, shared: { rollouts: ofBase }, brokenRollouts: 0 });
  // The stored result is reused: no process, no rollout, no question.
  expect(await attempt()).toEqual(whole);
  expect([evaluated(), questions()]).toEqual([made, asked]);

  const again = () => {
    home = newFolder();
    server.requests.length = 0;
    onQuestion = () => undefined;
  };
  for (const killAt of process.env['TEST_ALL'] ? [0, 17, made.length - 1] : []) {
    again();
    expect(await attempt({ killAt })).toBeUndefined();
    expect(await attempt()).toEqual(whole);
    expect([evaluated().sort(), questions()]).toEqual([[...made].sort(), asked]);
  }
  for (const who of ['worker', 'learner']) {
    again();
    let kill: () => void = () => undefined;
    onQuestion = (n) => {
      if (n === 3) (who === 'worker' ? kill : killLearner)();
    };
    expect(await attempt({ started: (killer) => (kill = killer) })).toBeUndefined();
    onQuestion = () => undefined;
    expect(await attempt()).toEqual(whole);
    expect(evaluated().sort()).toEqual([...made].sort());
    // The question that was under way when its worker died has brought no reply, and is asked again.
    expect([...new Set(questions())]).toEqual(asked);
    expect(twice(questions())).toHaveLength(who === 'worker' ? 1 : 0);
  }
});

test('when the budget of the language models is spent it ends with its best prompt, and continues once there is more', async () => {
  const short = (await attempt({ tokens: 250 }))!;
  const [made, asked] = [evaluated(), questions()];
  // A reply is 110 tokens: the third would pass the budget.
  expect(asked).toHaveLength(2);
  expect(short.rollouts).toBe(made.length);
  expect(short.checkpoints.length).toBeGreaterThan(0);
  expect(await attempt({ tokens: 250 })).toEqual(short);
  expect([evaluated(), questions()]).toEqual([made, asked]);
  const whole = (await attempt())!;
  expect(whole.rollouts).toBeGreaterThan(made.length);
  expect(whole.metrics.bytes).toBeGreaterThan(short.metrics.bytes);
  expect(whole.checkpoints.slice(0, short.checkpoints.length)).toEqual(short.checkpoints);
  expect(evaluated().slice(0, made.length)).toEqual(made);
  expect([twice(evaluated()), twice(questions())]).toEqual([[], []]);
});
