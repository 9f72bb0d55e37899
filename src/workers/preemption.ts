/**
 * What a cloud says of a machine that it is about to take away: its metadata service is asked again and again, from inside the machine. A notice leaves
 * 30 s on GCP and Azure, and 2 minutes on AWS.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { z } from 'zod';

const LOOK_MS = 2_000;
/** A worker does not begin before the first answer, or this. */
const FIRST_LOOK_MS = 5_000;
/** Azure's first answer takes up to 2 minutes. */
const ANSWER_MS = 130_000;

/** @throws Error for any other status than 200 and those that `also` may be */
type Ask = (path: string, init: RequestInit, ...also: number[]) => Promise<Response>;

const eventsSchema = z.object({
  Events: z.array(z.object({ EventType: z.string(), Resources: z.array(z.string()), NotBefore: z.string() })),
});

/** A look tells what was said of this machine's end, for people; undefined as long as nothing was. */
const clouds: Record<string, { address: () => string; looks: (ask: Ask) => () => Promise<string | undefined> }> = {
  aws: {
    address: () => process.env['AWS_EC2_METADATA_SERVICE_ENDPOINT'] ?? 'http://169.254.169.254',
    looks: (ask) => async () => {
      const wanted = { 'X-aws-ec2-metadata-token-ttl-seconds': '60' };
      const token = await (await ask('/latest/api/token', { method: 'PUT', headers: wanted })).text();
      // Not its advice to rebalance, which may stand for days of a machine that stays.
      const path = 'spot/instance-action';
      const answer = await ask(`/latest/meta-data/${path}`, { headers: { 'X-aws-ec2-metadata-token': token } }, 404);
      return answer.ok ? `${path} ${await answer.text()}` : undefined;
    },
  },
  gcp: {
    address: () => `http://${process.env['GCE_METADATA_HOST'] ?? 'metadata.google.internal'}`,
    looks: (ask) => {
      let wait = '';
      return async () => {
        const headers = { 'Metadata-Flavor': 'Google' };
        const answer = await ask(`/computeMetadata/v1/instance/preempted${wait}`, { headers });
        // From the second on, an answer comes with the change.
        const etag = answer.headers.get('etag');
        if (etag) wait = `?wait_for_change=true&timeout_sec=60&last_etag=${etag}`;
        return (await answer.text()).trim() === 'TRUE' ? 'instance/preempted TRUE' : undefined;
      };
    },
  },
  azure: {
    address: () => 'http://169.254.169.254',
    looks: (ask) => {
      const headers = { Metadata: 'true' };
      let name: string | undefined;
      return async () => {
        // Machines of one set are told of each other.
        name ??= await (
          await ask('/metadata/instance/compute/name?api-version=2021-02-01&format=text', { headers })
        ).text();
        const answer = await ask('/metadata/scheduledevents?api-version=2020-07-01', { headers });
        const { Events: events } = eventsSchema.parse(await answer.json());
        const mine = events.filter(({ Resources: names }) => names.includes(name!));
        const end = mine.find(({ EventType: type }) => type === 'Preempt' || type === 'Terminate');
        return end && `${end.EventType}, not before ${end.NotBefore}`;
      };
    },
  },
};

/**
 * Calls `onNotice` once; `warn` is told once that nobody answers. `address`: of the cloud's metadata service. Resolves when the cloud was asked first,
 * with what ends the watch. @throws Error for a cloud that is not known
 */
export async function watchForPreemption(o: {
  cloud: string;
  address?: string;
  onNotice: (said: string) => void;
  warn: (problem: string) => void;
}): Promise<() => void> {
  const { cloud, address, onNotice, warn } = o;
  const known = clouds[cloud];
  if (!known)
    throw new Error(`CAMPAIGN_PREEMPTION is ${cloud}; write ${Object.keys(clouds).join(', ')}, or leave it unset`);
  const base = address ?? known.address();
  const ended = new AbortController();
  const ask: Ask = async (path, init, ...also) => {
    const signal = AbortSignal.any([ended.signal, AbortSignal.timeout(ANSWER_MS)]);
    const answer = await fetch(base + path, { ...init, redirect: 'error', signal });
    if (answer.ok || also.includes(answer.status)) return answer;
    throw new Error(`${path} answers ${answer.status}`);
  };
  const look = known.looks(ask);
  let warned = false;
  const once = async () => {
    try {
      const said = await look();
      if (said === undefined) return;
      ended.abort();
      onNotice(`${cloud} takes this machine away: ${said}`);
    } catch (error) {
      if (ended.signal.aborted || warned) return;
      warned = true;
      const { message, cause } = error as Error;
      warn(
        `CAMPAIGN_PREEMPTION is ${cloud}, and ${base} does not tell: ${message}${cause ? `: ${String(cause)}` : ''}`,
      );
    }
  };
  const first = once();
  void (async () => {
    for (await first; !ended.signal.aborted; await once()) await sleep(LOOK_MS, undefined, { ref: false });
  })();
  await Promise.race([first, sleep(FIRST_LOOK_MS, undefined, { ref: false })]);
  return () => ended.abort();
}
