/**
 * kill -9 of the worker that asks a language model, time after time while it is asked. What has to hold: no question whose reply was kept is
 * asked again, no kill costs more than the request that was under way, and with the slices of killed workers nothing is spent uncounted.
 */
import { statSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { openFolderStore } from '../../../src/store/open-store';
import { total, type ModelUsage } from '../../../src/domain/endpoints';
import { spentOf } from '../../../src/llm/spending';
import { CAMPAIGN } from '../../support/faults-checks';
import { artifacts, wholeObject } from '../../support/faults-home';
import type { Scenario } from '../../support/faults-scenario';
import type { Session } from '../../support/faults-session';
import { paidSteps, startPaidEndpoint, type PaidEndpoint, type PaidStep } from '../../support/paid-endpoint';
import { questionHash, questionSchema } from '../../support/recorded-replies';

/**
 * In each step, how often it is killed and after how many requests: of what has several questions, some replies are there already. Kills
 * that a step is too short for fall to the next.
 */
type Kills = Record<PaidStep, { after: number; times: number }>;

const REPLY_MS = 1000;

interface KeptReply {
  at: number;
  tokens: number;
}

/** Kept replies by their questions. */
function keptIn({ home, keys }: Session): Map<string, KeptReply> {
  return new Map(
    keys.matching(/^reply\//).map(({ file, ref }) => {
      const { question, reply } = JSON.parse(String(wholeObject(home, ref.sha256))) as {
        question: unknown;
        reply: { usage: ModelUsage };
      };
      const tokens = reply.usage.promptTokens + reply.usage.completionTokens;
      return [questionHash(questionSchema.parse(question)), { at: statSync(file).mtimeMs, tokens }];
    }),
  );
}

/** Kills the processes as often as `kills` says and returns the number of kills; it is smaller if the campaign ended earlier. */
async function killAll(session: Session, { requests, replyMs }: PaidEndpoint, kills: Kills): Promise<number> {
  let [done, met] = [0, 0];
  const dueIn = (step: PaidStep): number =>
    paidSteps.slice(0, paidSteps.indexOf(step) + 1).reduce((sum, one) => sum + kills[one].times, 0);
  while (done < dueIn('environment')) {
    await session.until(() => requests.length > met, 'another request');
    met = requests.length;
    const { step } = requests[met - 1]!;
    const before = requests.filter((one) => one.step === step).length - 1;
    if (before < kills[step].after || done >= dueIn(step)) continue;
    // At any moment of the reply, and right after it.
    await sleep(session.random.between(0, 1.2 * replyMs));
    await session.kill('control-worker');
    done += 1;
  }
  return done;
}

/** Returns the problems: replies that were requested again although kept, paid beyond those in flight, or not counted. */
async function overpaid(session: Session, { requests }: PaidEndpoint, kills: number): Promise<string[]> {
  const questions = new Set(requests.map(({ question }) => question));
  const kept = keptIn(session);
  const extra = requests.length - questions.size;
  const store = openFolderStore(artifacts(session.home));
  const counted = total(await spentOf({ store, campaign: CAMPAIGN }));
  const keptTokens = [...kept.values()].reduce((sum, { tokens }) => sum + tokens, 0);
  session.notes.push(`${questions.size} questions, ${extra} of them once more, ${kills} kills`);
  return [
    ...requests
      .filter(({ question, at }) => at > (kept.get(question)?.at ?? Infinity))
      .map(({ step, question }) => `${step}: ${question} was asked again when its reply was kept`),
    ...(extra <= kills ? [] : [`${kills} kills cost ${extra} requests: one each was under way`]),
    ...[...questions].filter((one) => !kept.has(one)).map((one) => `the reply to ${one} was not kept`),
    ...(counted.requests <= requests.length
      ? []
      : [`${requests.length} requests came, ${counted.requests} are counted`]),
    ...(counted.tokens >= keptTokens ? [] : [`kept replies have ${keptTokens} tokens, ${counted.tokens} are counted`]),
  ];
}

function paid(name: string, kills: Kills): Scenario {
  const endpoints = new WeakMap<Session, PaidEndpoint>();
  return {
    name,
    file: 'paid',
    alone: true,
    async prepare(session) {
      const endpoint = await startPaidEndpoint({ replyMs: REPLY_MS });
      endpoints.set(session, endpoint);
      session.cleanups.push(() => endpoint.close());
      // One at a time: a kill meets one request.
      const model = `kind: llm, url: '${endpoint.url}', model: slow, concurrency: 1`;
      return `analyst: { ${model}, labelsPerChunk: 12 }\nsynthesizer: { ${model}, attacks: 1 }\nbudget: { tokens: 1000000 }\n`;
    },
    async act(session) {
      const endpoint = endpoints.get(session)!;
      session.start();
      const done = await killAll(session, endpoint, kills);
      await session.finish();
      return overpaid(session, endpoint, done);
    },
  };
}

export const paidShort = paid('kill: control-worker, twice while a language model is asked', {
  discovery: { after: 0, times: 0 },
  labels: { after: 2, times: 1 },
  environment: { after: 1, times: 1 },
});
export const paidFor: Scenario[] = [
  paid('kill: control-worker, ten times while a language model is asked', {
    discovery: { after: 0, times: 2 },
    labels: { after: 2, times: 4 },
    environment: { after: 1, times: 4 },
  }),
];
