/** Several policy servers behind one client: which one plays a conversation, and what becomes of those that are away. */
import { setTimeout as sleep } from 'node:timers/promises';
import { type FailureType, OutsideFailure } from '../../../src/domain/failures';
import type { PolicyClient } from '../../../src/policy/client';
import { createServerGroup } from '../../../src/policy/server-group';
import type { Turn, TurnRequest } from '../../../src/policy/wire';
import { scriptedPolicy } from '../../support/scripted-policy';

/** A server as its client shows it. */
function scriptedServer(url: string) {
  const server = {
    url,
    isThere: true,
    /** Of each request that it answered. */
    answered: [] as (object | undefined)[],
    fails: undefined as FailureType | undefined,
    /** What requests wait for. */
    held: Promise.resolve() as Promise<unknown>,
  };
  const client: PolicyClient = {
    ...scriptedPolicy(() => ({ role: 'assistant', content: '' })),
    ensurePolicy: async () => {
      fail();
      return url;
    },
    reachable: async () => server.isThere,
    async sample({ conversation }) {
      fail();
      await server.held;
      server.answered.push(conversation);
      return {} as Turn;
    },
  };
  const fail = () => {
    if (server.fails) throw new OutsideFailure(server.fails, `policy server ${url}`);
  };
  return Object.assign(server, { client });
}

const groups: PolicyClient[] = [];
afterEach(() => groups.splice(0).forEach((group) => group.close()));
function grouped(count: number) {
  const servers = Array.from({ length: count }, (_, n) => scriptedServer(`http://${n}`));
  const group = createServerGroup(servers, { lookMs: 10 });
  groups.push(group);
  const turn = (conversation: object) => group.sample({ conversation } as TurnRequest);
  return { servers, group, turn };
}

test('conversations begin where least is to do, and stay there', async () => {
  const { servers, turn } = grouped(3);
  const conversations = Array.from({ length: 12 }, (_, id) => ({ id }));
  for (let step = 0; step < 3; step++) await Promise.all(conversations.map(turn));
  for (const { answered } of servers) {
    expect(new Set(answered).size).toBe(4);
    expect(answered).toHaveLength(12);
  }
  // One after the other: each has its turn.
  for (let id = 0; id < 6; id++) await turn({ id });
  expect(servers.map(({ answered }) => answered.length)).toEqual([14, 14, 14]);
});

test.each(['PolicyServerUnavailable', 'PolicyServerError', 'PolicyServerTimeout'] as const)(
  'after %s a server is left out, and taken back when it answers',
  async (type) => {
    const { servers, group, turn } = grouped(2);
    const [one, two] = [servers[0]!, servers[1]!];
    Object.assign(one, { isThere: false, fails: type });
    await expect(turn({})).rejects.toMatchObject({ type });
    for (let n = 0; n < 4; n++) await turn({});
    expect(two.answered).toHaveLength(4);
    expect(await group.reachable()).toBe(true);
    expect(await group.ensurePolicy({ base: 'b', adapters: [] })).toBe(two.url);
    Object.assign(one, { isThere: true, fails: undefined });
    while (one.answered.length < 2) await Promise.all([turn({}), sleep(5)]);
  },
);

test('where all are away, that is told', async () => {
  const { servers, group, turn } = grouped(2);
  for (const one of servers) Object.assign(one, { isThere: false, fails: 'PolicyServerUnavailable' });
  for (let n = 0; n < 3; n++) await expect(turn({})).rejects.toMatchObject({ type: 'PolicyServerUnavailable' });
  await expect(group.ensurePolicy({ base: 'b', adapters: [] })).rejects.toMatchObject({
    type: 'PolicyServerUnavailable',
  });
  expect(await group.reachable()).toBe(false);
});

test('a server of another base, or one that refuses an adapter, is refused though another is right', async () => {
  const { servers, group, turn } = grouped(2);
  servers[0]!.fails = 'WrongBaseModel';
  const wrong = { type: 'WrongBaseModel' };
  await expect(group.ensurePolicy({ base: 'b', adapters: [] })).rejects.toMatchObject(wrong);
  const asked = await Promise.allSettled([turn({}), turn({})]);
  expect(asked.filter(({ status }) => status === 'rejected')).toEqual([
    expect.objectContaining({ reason: expect.objectContaining(wrong) as unknown }),
  ]);
});

test('what waits for a host that is gone without a word ends once it has not answered three times', async () => {
  const { servers, turn } = grouped(2);
  servers[0]!.held = new Promise(() => undefined);
  const waiting = turn({});
  servers[0]!.isThere = false;
  await expect(waiting).rejects.toMatchObject({
    type: 'PolicyServerUnavailable',
    message: expect.stringContaining('http://0') as string,
  });
  await turn({});
  expect(servers[1]!.answered).toHaveLength(1);
});
