/** Conversations that somebody brings to learn from: what is taken of a file, what is said of a bad one and when, and the training without rollouts. */
import { chmodSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { createControlActivities, createGpuActivities } from '../../../src/activities';
import { dealGpus } from '../../../src/training/learner-process';
import type { FineTuneInput } from '../../../src/activities/types';
import { openFolderStore } from '../../../src/artifacts/open-store';
import { runChecks } from '../../../src/checks/check';
import { targetChecks } from '../../../src/cli/checks/target';
import { homeAt } from '../../../src/cli/project';
import { takeConversations } from '../../../src/conversations/read';
import { campaignSchema } from '../../../src/domain/campaign';
import type { TrainingResult } from '../../../src/domain/results';
import { registry, shopParts } from '../../support/kinds';
import { run } from '../../support/activity-inputs';
import { withCheckpoints } from '../../support/memory-store';
import { countingEnvironment, countingPolicy } from '../../support/counting-environment';
import { poolOf } from '../../support/environment-pool';
import { eachTemporaryFolder } from '../../support/temporary-folder';

let home: string;
eachTemporaryFolder((made) => (home = made));
afterEach(() => void delete process.env['ASKS']);

const call = { id: 'c0', type: 'function', function: { name: 'add', arguments: '{"to":"n","by":1}' } };
const conversation = (reward: number, more: object = {}) => ({
  reward,
  messages: [
    { role: 'user', content: 'n-1' },
    { role: 'assistant', content: null, tool_calls: [call] },
    { role: 'tool', content: 'added' },
    { role: 'assistant', content: 'done' },
  ],
  ...more,
});
function fileOf(...lines: (object | string)[]): string {
  const file = join(home, 'conversations.jsonl');
  writeFileSync(file, lines.map((line) => (typeof line === 'string' ? line : JSON.stringify(line))).join('\n'));
  return file;
}
const store = () => openFolderStore(join(home, 'artifacts'));
const dependencies = () => ({
  store: store(),
  home,
  python: join(home, 'python'),
  model: 'models/base',
  kinds: registry,
  environments: poolOf(async () => countingEnvironment()),
});

const take = (file: string, minReward = 1) =>
  run(createControlActivities(dependencies()).takeConversations, { file, minReward });

describe('a file', () => {
  test('gives those with enough reward', async () => {
    const file = fileOf(conversation(1, { id: 'good' }), conversation(0.5, { id: 'half' }), conversation(0));
    const { conversations, count } = await take(file);
    expect(count).toBe(1);
    expect(JSON.parse(String(await store().read(conversations)))).toMatchObject([{ id: 'good' }]);
    expect((await take(file, 0.5)).count).toBe(2);
    expect((await take(file, 0)).count).toBe(3);
    // The same conversations are one artifact, wherever they lie.
    expect((await take(fileOf(conversation(1, { id: 'good' })))).conversations).toEqual(conversations);
  });

  test('without any of them says what it has', async () => {
    const file = fileOf(conversation(0.5), conversation(0));
    await expect(takeConversations({ file, minReward: 1 })).rejects.toMatchObject({
      type: 'BadInput',
      message: `${file}: none of its 2 conversations has a reward of 1 or more (the best has 0.5); lower minReward, or name a file of successful ones`,
    });
  });

  test('that is wrong is refused before any work starts, with line, field and fix', async () => {
    const file = fileOf(conversation(1), { ...conversation(1), messages: [{ role: 'agent', content: 'x' }] });
    const campaign = campaignSchema.parse({
      name: 'x',
      ...shopParts,
      baseModel: { path: home },
      arms: [
        { kind: 'sft', conversations: file },
        { kind: 'environments', modules: join(home, 'gone') },
      ],
    });
    const checks = await runChecks(targetChecks({ campaign, home: homeAt(home) }));
    expect(checks.filter(({ ok }) => !ok)).toMatchObject([
      {
        name: 'arms.sft.conversations',
        detail: expect.stringContaining('conversations.jsonl:2 messages.0.role: expected system'),
        fix: 'correct arms.sft.conversations in the campaign file, or what it names',
      },
      { name: 'arms.environments.modules', detail: expect.stringMatching(/gone cannot be read .*; name a folder of/) },
    ]);
  });
});

describe('the training on them', () => {
  const learner = resolve(__dirname, '../..', 'fixtures', 'learners', 'asks-nothing.mjs');

  async function train(): Promise<TrainingResult> {
    const { python } = dependencies();
    // Called as `python -m trainer sft --job FILE`.
    writeFileSync(
      python,
      `#!/bin/sh\n[ "$3" = base-id ] && echo '{"id":"base@1"}' > "$7"\n[ "$3" = sft ] && exec "${process.execPath}" "${learner}" "$5" "$ASKS"\nexit 0\n`,
    );
    chmodSync(python, 0o755);
    const { conversations } = await take(fileOf(conversation(1, { id: 'one' })));
    const input: FineTuneInput = {
      name: 'sft',
      maker: { kind: 'sft', version: '1', options: {} },
      environment: { kind: 'shop' },
      base: 'base@1',
      conversations,
      training: {
        ...campaignSchema.parse({ name: 'x', ...shopParts, baseModel: { path: '' } }).training,
        ...{ epochs: 2, steps: undefined, rowsPerStep: 4, checkpointEvery: 1 },
      },
      seed: 1,
      heartbeatSeconds: 30,
      stallSeconds: 30,
    };
    const { fineTune } = createGpuActivities({
      ...dependencies(),
      client: countingPolicy(),
      gpus: dealGpus({ slots: 1, perTrainer: 0, visible: undefined }),
    });
    return withCheckpoints(dependencies().store, await run(fineTune, input));
  }
  const folder = () => join(home, 'trainings', readdirSync(join(home, 'trainings'))[0]!);

  test('spends no rollouts, shows the learner what the policy server would be sent, and is made once', async () => {
    const result = await train();
    expect(result).toMatchObject({ steps: 2, rollouts: 0 });
    expect(result.checkpoints.map(({ step }) => step)).toEqual([1, 2]);
    expect(JSON.parse(readFileSync(join(folder(), 'job.json'), 'utf8'))).toMatchObject({
      epochs: 2,
      steps: null,
      rows_per_step: 4,
      conversations: join(folder(), 'conversations.jsonl'),
    });
    const { tools } = await countingEnvironment().describe();
    expect(JSON.parse(readFileSync(join(folder(), 'conversations.jsonl'), 'utf8'))).toEqual({
      id: 'one',
      messages: [
        { role: 'user', content: 'n-1' },
        // Its arguments in the order in which they were written: another text would be learned otherwise.
        { role: 'assistant', content: '', tool_calls: [call] },
        { role: 'tool', tool_call_id: 'c0', content: 'added' },
        { role: 'assistant', content: 'done' },
      ],
      tools: tools.map(({ name, description, parameters }) => {
        return { type: 'function', function: { name, description, parameters } };
      }),
    });
    // The weights lead back to the conversations.
    const [{ policy }] = result.checkpoints as [TrainingResult['checkpoints'][number]];
    const { conversations } = await take(join(home, 'conversations.jsonl'));
    expect((await store().provenance(policy.adapters[0]!.ref)).inputs).toEqual([conversations]);
    expect(await train()).toEqual(result);
    expect(readFileSync(join(folder(), 'starts'), 'utf8').trim().split('\n')).toHaveLength(1);
  });

  test('makes none for a learner that asks for them', async () => {
    process.env['ASKS'] = 'yes';
    await expect(train()).rejects.toMatchObject({
      type: 'TrainerDied',
      message: 'the trainer asks for rollouts, and it learns from what it was given',
    });
  });
});
