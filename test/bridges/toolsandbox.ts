/**
 * ToolSandbox through the engine: the real bridge, a scripted agent and user. It needs a checkout, which TOOLSANDBOX names, and
 * `make bridges-toolsandbox`; bridges/tests/test_toolsandbox_scores.py holds its scores against ToolSandbox's own.
 */
import { execFileSync } from 'node:child_process';
import { resolve } from 'node:path';
import type { Environment } from '../../src/domain/environment';
import type { AssistantMessage } from '../../src/domain/messages';
import type { Rollout } from '../../src/domain/rollout';
import { toolsandboxProgram } from '../../src/environments/benchmarks';
import { checkEnvironment } from '../../src/environments/conformance';
import { openProcessEnvironment } from '../../src/environments/process';
import type { SimulatedUser } from '../../src/llm/partners';
import { programsWith } from '../support/programs';
import { scriptedPolicy, turnOf } from '../support/scripted-policy';
import { scriptedRollouts } from '../support/scripted-rollouts';

const folder = process.env.TOOLSANDBOX;
const withFolder = folder === undefined ? describe.skip : describe;
const TIMEOUT = 10 * 60_000;

/** Ends the conversation as soon as it is spoken to. */
const user: SimulatedUser = {
  id: 'scripted',
  speak: async ({ tools }) => ({
    role: 'user',
    content: '',
    toolCalls: [{ id: 'end', name: tools[0]!.name, arguments: {} }],
  }),
};
const say = (content: string): AssistantMessage => ({ role: 'assistant', content });
const call = (name: string, values: Record<string, unknown>): AssistantMessage => ({
  ...say(''),
  toolCalls: [{ id: 'call', name, arguments: values }],
});

withFolder(folder === undefined ? 'ToolSandbox (skipped: TOOLSANDBOX names no checkout of it)' : 'ToolSandbox', () => {
  let environment: Environment;
  beforeEach(() => {
    const program = toolsandboxProgram({ folder: resolve(folder!), heldOut: 0 });
    environment = openProcessEnvironment({ ...program, user });
  });
  afterEach(() => environment.close());

  /** After its script the agent says "done". */
  const rollouts = (tasks: string[], script: AssistantMessage[], onTurn = () => {}): Promise<Rollout[]> =>
    scriptedRollouts({
      environment,
      client: scriptedPolicy(({ messages }) => {
        onTurn();
        return script[turnOf(messages)] ?? say('done');
      }),
      tasks,
    });

  test('keeps the contract', async () => expect(await checkEnvironment(environment)).toEqual([]), TIMEOUT);

  test(
    'what was done decides the reward',
    async () => {
      const [rollout] = await rollouts(
        ['wifi_off'],
        [call('set_wifi_status', { on: false }), say('Wifi is turned off')],
      );
      expect(rollout).toMatchObject({
        status: 'scored',
        stopReason: 'user_stop',
        reward: 1,
        breakdown: { perfect: 1 },
      });
      const [unknown] = await rollouts(['wifi_off_all_tools'], [call('hang_up', {})]);
      expect(unknown).toMatchObject({ status: 'scored', stopReason: 'agent_error', reward: 0 });
    },
    TIMEOUT,
  );

  test(
    'an agent that does nothing, on all base scenarios',
    async () => {
      await environment.describe();
      const ids = (await environment.tasks('test')).map(({ id }) => id);
      const started = performance.now();
      const made = await rollouts(ids, []);
      const seconds = (performance.now() - started) / 1000;
      const rewards = made.map((rollout) => (rollout.status === 'scored' ? rollout.reward : NaN));
      const perfect = rewards.filter((reward) => reward === 1).length;
      const mean = rewards.reduce((sum, reward) => sum + reward, 0) / rewards.length;
      expect(made).toHaveLength(129);
      // Where information is missing, nothing is wanted: a score of 1 is not always an achievement.
      expect(perfect).toBe(26);
      console.log(
        `${made.length} scenarios in ${seconds.toFixed(1)} s, 8 at once in one process; perfect ${perfect}, ` +
          `mean similarity ${mean.toFixed(3)}; memory ${Math.round(memoryOf(bridge()) / 1024)} MiB`,
      );
    },
    TIMEOUT,
  );

  test(
    'a bridge that is killed breaks its rollouts and is started again',
    async () => {
      await environment.describe();
      const killed = rollouts(['wifi_off', 'wifi_off_all_tools'], [], () => process.kill(bridge(), 'SIGKILL'));
      // The engine's word for a batch of which nothing could be scored.
      await expect(killed).rejects.toMatchObject({ type: 'EnvironmentDied' });
      const [again] = await rollouts(['get_wifi'], []);
      expect(again).toMatchObject({ status: 'scored' });
    },
    TIMEOUT,
  );
});

/** The process id of this test's bridge. */
const bridge = (): number => programsWith('bridges.toolsandbox')[0]!;

/** KiB, resident. */
const memoryOf = (pid: number): number => Number(execFileSync('ps', ['-o', 'rss=', '-p', String(pid)]).toString());
