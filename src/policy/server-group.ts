/**
 * Several policy servers as one. A conversation begins on the one that has least to do and stays there, where its prefix is cached. One that fails is
 * left out until it answers again, and its conversations fail: whoever plays them begins anew, elsewhere.
 */
import { setMaxListeners } from 'node:events';
import { orAborted } from '../domain/concurrency';
import { type FailureType, isFailure, OutsideFailure } from '../domain/failures';
import type { FixedPolicy } from '../domain/rollout';
import type { PolicyClient } from './client';

/** How often servers that are asked something, or were left out, are looked at. */
const LOOK_MS = 5_000;
/** A host that is gone ends no connection: after so many looks in a row without an answer nothing is waited for any more. */
const LOOKS = 3;
/** After these it is looked whether the server is there at all. */
const AWAY: FailureType[] = ['PolicyServerUnavailable', 'PolicyServerError', 'PolicyServerTimeout'];

interface Member {
  url: string;
  client: PolicyClient;
  /** Requests under way. */
  requests: number;
  /** Which choice was the last that it was. */
  chosen: number;
  isAway: boolean;
  isLookedAt: boolean;
  /** Looks in a row that it has not answered. */
  misses: number;
  /** Aborts what waits for its answers. */
  gone: AbortController;
}

export function createServerGroup(
  servers: readonly Pick<Member, 'url' | 'client'>[],
  { lookMs = LOOK_MS }: { lookMs?: number } = {},
): PolicyClient {
  const members = servers.map((server): Member => ({
    ...server,
    ...{ requests: 0, chosen: 0, isAway: false, isLookedAt: false, misses: 0, gone: unlimited() },
  }));
  const homes = new WeakMap<object, Member>();
  let choices = 0;
  const looking = setInterval(() => {
    for (const one of members) if (one.isAway || one.requests > 0) void look(one);
  }, lookMs).unref();

  /** Where all are away, whoever is asked says so. */
  function choose(): Member {
    const there = members.filter(({ isAway }) => !isAway);
    const [first] = (there.length > 0 ? there : [...members]).sort(
      (a, b) => a.requests - b.requests || a.chosen - b.chosen,
    );
    first!.chosen = ++choices;
    return first!;
  }

  function homeOf(conversation: object | undefined): Member {
    const home = (conversation && homes.get(conversation)) ?? choose();
    if (conversation) homes.set(conversation, home);
    return home;
  }

  async function ask<Answer>(member: Member, work: (client: PolicyClient) => Promise<Answer>): Promise<Answer> {
    member.requests++;
    try {
      return await orAborted(work(member.client), member.gone.signal);
    } catch (error) {
      if (isFailure(error, ...AWAY)) {
        member.isAway = true;
        void look(member);
      }
      throw error;
    } finally {
      member.requests--;
    }
  }

  async function look(member: Member): Promise<void> {
    if (member.isLookedAt) return;
    member.isLookedAt = true;
    member.isAway = !(await member.client.reachable());
    member.isLookedAt = false;
    member.misses = member.isAway ? member.misses + 1 : 0;
    if (member.misses < LOOKS) return;
    const problem = `policy server ${member.url}: it has not answered ${member.misses} times in a row`;
    member.gone.abort(new OutsideFailure('PolicyServerUnavailable', problem));
    member.gone = unlimited();
  }

  return {
    async ensurePolicy(policy: FixedPolicy) {
      const asked = await Promise.allSettled(members.map((one) => ask(one, (client) => client.ensurePolicy(policy))));
      const failed = asked.flatMap((one) => (one.status === 'rejected' ? [one.reason as unknown] : []));
      const told = failed.find((error) => !isFailure(error, ...AWAY)) ?? failed[0];
      const made = asked.find((one) => one.status === 'fulfilled');
      if (!made || !failed.every((error) => isFailure(error, ...AWAY))) throw told;
      return made.value;
    },
    sample: (request) => ask(homeOf(request.conversation), (client) => client.sample(request)),
    complete: (request) => ask(homeOf(request.conversation), (client) => client.complete(request)),
    likeliest: (request) => ask(choose(), (client) => client.likeliest(request)),
    unload: async (policy) => void (await Promise.all(members.map(({ client }) => client.unload(policy)))),
    reachable: () =>
      Promise.any(members.map(async ({ client }) => (await client.reachable()) || Promise.reject(new Error()))).catch(
        () => false,
      ),
    close() {
      clearInterval(looking);
      for (const { client } of members) client.close();
    },
  };
}

/** As many may wait for it as there are requests. */
function unlimited(): AbortController {
  const controller = new AbortController();
  setMaxListeners(0, controller.signal);
  return controller;
}
