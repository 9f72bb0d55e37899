/** The policy server misbehaves in the middle of batches. Its own failures may break rollouts, which are then counted as broken. */
import { setTimeout as sleep } from 'node:timers/promises';
import { join } from 'node:path';
import { repository } from '../../support/campaign-run';
import { startEmbeddedServer } from '../../support/embedded-server';
import { startProxy, type Misbehaviour, type Proxy } from '../../support/faults-proxy';
import type { Scenario } from '../../support/faults-scenario';
import type { Session } from '../../support/faults-session';

const model = process.env['BASE_MODEL'] ?? join(repository, 'models/base');
const proxies = new WeakMap<Session, Proxy>();

/** A real server, the proxy before it, and the lines of a campaign file that name the proxy. */
async function prepare(session: Session): Promise<string> {
  const server = await startEmbeddedServer({ model, args: ['--threads', '1'] });
  session.cleanups.push(() => server.stop());
  const proxy = await startProxy({ url: server.url, random: session.random });
  session.cleanups.push(() => proxy.close());
  proxies.set(session, proxy);
  const answer = await fetch(`${server.url}/v1/models`);
  const { data } = (await answer.json()) as { data: { max_model_len: number }[] };
  return `policyServer: { kind: vllm, url: '${proxy.url}', contextTokens: ${data[0]?.max_model_len} }\n`;
}

/** During base rollouts, training and evaluation: `seconds` of misbehaviour, then none. */
const misbehaving = (how: Misbehaviour, share: number, seconds: number): Scenario => ({
  name: `policy server: ${how}`,
  file: 'small',
  // A batch waits for a server that is away or slow; only what it answers wrongly can break a rollout.
  allow: { broken: !['gone', 'slow'].includes(how) },
  prepare,
  async act(session) {
    const proxy = proxies.get(session);
    if (!proxy) throw new Error('there is no proxy');
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
    const url = proxies.get(session)?.url ?? '';
    session.start();
    let forgotten = 0;
    for (const ended = session.run.exit; !session.run.ended; await Promise.race([sleep(2000), ended])) {
      const answer = await fetch(`${url}/v1/models`);
      const { data } = (await answer.json()) as { data: { id: string; parent: string | null }[] };
      for (const { id } of data.filter(({ parent }) => parent)) {
        const body = JSON.stringify({ lora_name: id });
        await fetch(`${url}/v1/unload_lora_adapter`, { method: 'POST', body });
        forgotten++;
      }
    }
    session.notes.push(`${forgotten} adapters forgotten`);
  },
};

export const policyServers: Scenario[] = [
  misbehaving('slow', 0.3, 8),
  misbehaving('error 500', 0.3, 5),
  misbehaving('busy 503', 1, 6),
  misbehaving('cut off', 0.3, 5),
  misbehaving('unknown model', 0.3, 5),
  misbehaving('nonsense', 0.02, 5),
  misbehaving('gone', 1, 12),
  forgetful,
];
