/**
 * The policy server misbehaves in the middle of batches, or another one takes its place. Its own failures may break rollouts, which are then
 * counted as broken.
 */
import { readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { dirname, join } from 'node:path';
import type { Snapshot } from '../../../src/cli/watch/snapshot';
import { baseModel, command } from '../../support/campaign-run';
import { makeRandomModel, startEmbeddedServer } from '../../support/embedded-server';
import { CAMPAIGN } from '../../support/faults-checks';
import { artifacts, filesBelow } from '../../support/faults-home';
import { startProxy, type Misbehaviour, type Proxy } from '../../support/faults-proxy';
import type { Scenario } from '../../support/faults-scenario';
import type { Session } from '../../support/faults-session';

const proxies = new WeakMap<Session, { proxy: Proxy; server: string }>();
const proxyOf = (session: Session) => proxies.get(session)!;

/** A real server, the proxy before it, and the lines of a campaign file that name the proxy. */
async function prepare(session: Session): Promise<string> {
  const server = await startEmbeddedServer({ model: baseModel, args: ['--threads', '1'] });
  session.cleanups.push(() => server.stop());
  const proxy = await startProxy({ url: server.url, random: session.random });
  session.cleanups.push(() => proxy.close());
  proxies.set(session, { proxy, server: server.url });
  const answer = await fetch(`${server.url}/v1/models`);
  const { data } = (await answer.json()) as { data: { max_model_len: number }[] };
  return `policyServer: { kind: vllm, url: '${proxy.url}', contextTokens: ${data[0]?.max_model_len} }\n`;
}

/** During base rollouts, training and evaluation: `seconds` of misbehaviour, then none. */
const misbehaving = (how: Misbehaviour, share: number, seconds: number): Scenario => ({
  name: `policy server: ${how}`,
  file: 'small',
  // A batch waits for an unavailable or slow server; only a wrong answer can break a rollout.
  allow: { broken: !['gone', 'slow'].includes(how) },
  prepare,
  async act(session) {
    const { proxy } = proxyOf(session);
    session.start();
    for (const phase of ['base rollouts', 'training', 'evaluation'] as const) {
      await session.phase(phase);
      proxy.misbehave(how, share);
      await sleep(seconds * 1000);
      proxy.behave();
    }
    session.notes.push(`${proxy.disturbed} completions disturbed`);
  },
});

/** Adapters that the server has forgotten are loaded again. */
const forgetful: Scenario = {
  name: 'policy server: forgets its adapters',
  file: 'small',
  prepare,
  async act(session) {
    const { url } = proxyOf(session).proxy;
    session.start();
    let forgotten = 0;
    for (const ended = session.run.exit; !session.run.ended; await Promise.race([sleep(2000), ended])) {
      const answer = await fetch(`${url}/v1/models`);
      const { data } = (await answer.json()) as { data: { id: string; parent: string | null }[] };
      for (const { id } of data.filter(({ parent }) => parent)) {
        const body = JSON.stringify({ lora_name: id });
        await fetch(`${url}/v1/unload_lora_adapter`, {
          method: 'POST',
          headers: { 'content-type': 'application/json' },
          body,
        });
        forgotten++;
      }
    }
    session.notes.push(`${forgotten} adapters forgotten`);
  },
};

/** Returns true if a step of the campaign, or of a child, waits for another attempt after a WrongBaseModel. */
async function refusesTheBase({ home }: Session): Promise<boolean> {
  const seen = JSON.parse(await command(home, 'status', CAMPAIGN, '--json')) as Snapshot;
  const steps = [seen, ...seen.children].flatMap(({ activities }) => activities);
  return steps.some(({ lastFailureType }) => lastFailureType === 'WrongBaseModel');
}

/** The texts that occur in an artifact or a chunk of the campaign. */
function recorded({ home }: Session, texts: readonly string[]): string[] {
  const files = ['objects', 'chunks'].flatMap((folder) => filesBelow(artifacts(home, folder)));
  const bodies = files.map((file) => readFileSync(file, 'utf8'));
  return texts.filter((text) => bodies.some((body) => body.includes(text)));
}

/** The server is replaced by one that serves another base model until a step has refused it, in the middle of base rollouts, training and evaluation. */
const replaced: Scenario = {
  name: 'policy server: replaced by one of another base model',
  file: 'small',
  prepare,
  async act(session) {
    const random = join(dirname(session.file), 'random');
    makeRandomModel(random);
    const other = await startEmbeddedServer({ model: random, args: ['--threads', '1'] });
    session.cleanups.push(() => other.stop());
    const { proxy, server } = proxyOf(session);
    const found: string[] = [];
    session.start();
    for (const phase of ['base rollouts', 'training', 'evaluation'] as const) {
      await session.phase(phase);
      proxy.replace(other.url);
      while (!session.run.ended && !(await refusesTheBase(session).catch(() => false))) await sleep(500);
      if (session.run.ended) found.push(`the campaign ended with another base model, in ${phase}`);
      proxy.replace(server);
    }
    await session.run.exit;
    const logprobs = proxy.answersOfOthers.flatMap(firstLogprobs);
    session.notes.push(`another base model answered ${logprobs.length} completions`);
    return [...found, ...recorded(session, logprobs).map((number) => `recorded, of another base model: ${number}`)];
  },
};

const TOLD = 3;
/**
 * Returns the log-probs of an answer's first tokens, as a rollout keeps them: two answers do not share so many digits by chance. Empty for an
 * error or a shorter answer.
 */
function firstLogprobs(body: string): string[] {
  const { choices = [] } = JSON.parse(body) as { choices?: { logprobs: { content: { logprob: number }[] } }[] };
  const sampled = choices.map(({ logprobs }) => logprobs.content.map(({ logprob }) => Math.round(logprob * 1e6) / 1e6));
  return sampled.flatMap((logprobs) => (logprobs.length < TOLD ? [] : [logprobs.slice(0, TOLD).join(',')]));
}

export const policyServers: Scenario[] = [
  misbehaving('slow', 0.3, 8),
  misbehaving('error 500', 0.3, 5),
  misbehaving('busy 503', 1, 6),
  misbehaving('cut off', 0.3, 5),
  misbehaving('unknown model', 0.3, 5),
  misbehaving('nonsense', 0.02, 5),
  misbehaving('gone', 1, 12),
  forgetful,
  replaced,
];
