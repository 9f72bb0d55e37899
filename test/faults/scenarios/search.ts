/**
 * kill -9 of each process while GEPA searches for a prompt, and of everything. What has to hold: no (task, seed, prompt) is evaluated twice, the
 * search stays within its cap over all its attempts, and no question whose reply was kept is asked again.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { startChatServer, type ChatServer } from '../../support/chat-server';
import { readReport } from '../../support/faults-checks';
import { namesIn, trainingsOf } from '../../support/faults-home';
import { signal } from '../../support/faults-processes';
import type { Scenario } from '../../support/faults-scenario';
import type { ProcessName, Session } from '../../support/faults-session';
import { streamed } from '../../support/model-endpoint';
import { questionHash } from '../../support/recorded-replies';

const REPLY_MS = 300;
const endpoints = new WeakMap<Session, ChatServer>();

/** Stands for the reflection model and is written for this test: another prompt for each question, the same for the same. */
const replyByTest = (question: string): string => `\`\`\`\nLook before you act (${question.slice(0, 8)}).\n\`\`\``;

/** The search's own process: it writes its id beside its files. */
function killSearch(session: Session): void {
  const folder = trainingsOf(session.home).find(
    (training) => namesIn(training).includes('.lock') && isSearch(training),
  );
  if (folder === undefined || !signal(Number(readFileSync(join(folder, '.lock'), 'utf8')), 'SIGKILL'))
    session.notes.push('no search to kill');
}
const isSearch = (training: string): boolean => /\/gepa-[^/]+$/.test(training);

type Victim = ProcessName | 'search' | 'everything';
const victims: readonly Victim[] = [
  ...(['search', 'rollouts-worker', 'policy-server', 'everything', 'search', 'temporal'] as const),
  ...(['control-worker', 'rollouts-worker', 'supervisor', 'everything'] as const),
];

async function kill(session: Session, victim: Victim): Promise<void> {
  if (victim === 'search') return killSearch(session);
  if (victim !== 'everything') return session.kill(victim);
  await session.killEverything();
  session.start();
}

function searchedTwice(session: Session, { requests }: ChatServer, kills: number): string[] {
  const arms = readReport(session.home).arms ?? [];
  const arm = arms.find(({ kind }) => kind === 'gepa');
  const cap = arms.find(({ role }) => role === 'routed')?.trainingRollouts.value ?? 0;
  const made = arm?.training?.rollouts.value ?? 0;
  const asked = requests.map(({ body }) => questionHash(body));
  const extra = asked.length - new Set(asked).size;
  session.notes.push(
    `${kills} kills, ${made} rollouts of ${cap}, ${asked.length - extra} questions and ${extra} again`,
  );
  return [
    ...(arm?.status === 'completed' ? [] : [`the arm is ${arm?.status}: ${arm?.reason}`]),
    ...(made <= cap ? [] : [`the report counts ${made} rollouts, the cap is ${cap}`]),
    ...(extra <= kills ? [] : [`${kills} kills cost ${extra} questions: one each was under way`]),
  ];
}

export const searches: Scenario[] = [
  {
    name: 'kill: each process and everything while GEPA searches for a prompt',
    file: 'search',
    alone: true,
    async prepare(session) {
      const server = await startChatServer((body, response) => {
        const text = replyByTest(questionHash(body));
        return streamed(text, { piece: 4, pauseMs: (4 * REPLY_MS) / text.length })(body, response);
      });
      endpoints.set(session, server);
      session.cleanups.push(() => server.close());
      const reflection = `reflection: { url: '${server.url}', model: by-test }`;
      const search = 'validationTasks: 4, minibatchSize: 2, acceptance: improvement_or_equal';
      return `arms: [{ kind: gepa, ${search}, ${reflection} }]\n`;
    },
    async act(session) {
      const server = endpoints.get(session)!;
      session.start();
      let done = 0;
      for (const victim of victims) {
        const met = server.requests.length;
        const another = () => server.requests.length > met;
        if (!(await session.seen(another, 'another question'))) break;
        // At any moment of the reply, or of the rollouts that it leads to.
        await sleep(session.random.between(0, 4 * REPLY_MS));
        await kill(session, victim);
        done += 1;
      }
      if (done < victims.length) session.notes.push(`the search was over before ${victims.slice(done).join(', ')}`);
      await session.finish();
      return searchedTwice(session, server, done);
    },
  },
];
