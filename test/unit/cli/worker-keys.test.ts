/** Keys of the services of `campaign run`: which gets which, and that no process shows one. */
import { readFileSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { loadCampaign } from '../../../src/cli/campaign-file';
import { homeAt } from '../../../src/cli/project';
import { Service } from '../../../src/cli/services/service';
import { policyServerService, workerServices } from '../../../src/cli/services/services';
import { atEnd } from '../../support/opened';
import { newFolder } from '../../support/temporary-folder';

const { env } = process;
afterEach(() => (process.env = env));

const KEYS = [
  'ANALYST_KEY',
  'WRITER_KEY',
  'USER_KEY',
  'PASSED_TOKEN',
  'TINKER_API_KEY',
  'WANDB_API_KEY',
  'POLICY_SERVER_API_KEY',
  'GITHUB_TOKEN',
];

function campaignIn(folder: string) {
  const file = join(folder, 'mine.yaml');
  const model = (name: string) => `{ url: 'http://127.0.0.1:4321', model: m, apiKeyEnv: ${name} }`;
  writeFileSync(
    file,
    `name: mine
target: { kind: process, command: [node, x.js], passEnv: [PASSED_TOKEN], user: ${model('USER_KEY')} }
baseModel: { path: . }
analyst: { kind: llm, ${model('ANALYST_KEY').slice(1)}
synthesizer: { kind: llm, ${model('WRITER_KEY').slice(1)}
`,
  );
  return loadCampaign({ file });
}

test('a worker gets the keys that the steps of its queue use, and none in its environment', () => {
  const folder = newFolder();
  process.env = {
    ...env,
    AWS_SECRET_ACCESS_KEY: 'k',
    OMP_NUM_THREADS: '2',
    ...Object.fromEntries(KEYS.map((name) => [name, 'k'])),
  };
  const home = homeAt(folder);
  const services = workerServices({
    home,
    variables: { TEMPORAL_ADDRESS: 'a:1' },
    policyServerUrl: 'http://127.0.0.1:4321',
    pool: 'p',
    campaign: campaignIn(folder),
    plugins: [],
  });
  const got = services.map(({ name, keys = {} }) => [name, KEYS.filter((key) => key in keys)]);
  expect(Object.fromEntries(got)).toEqual({
    'control-worker': ['ANALYST_KEY', 'WRITER_KEY', 'USER_KEY', 'PASSED_TOKEN'],
    'rollouts-worker': ['USER_KEY', 'PASSED_TOKEN', 'POLICY_SERVER_API_KEY'],
    'gpu-worker': ['USER_KEY', 'PASSED_TOKEN', 'TINKER_API_KEY', 'WANDB_API_KEY', 'POLICY_SERVER_API_KEY'],
  });
  for (const { env, keys } of services) {
    expect(keys).toMatchObject({ AWS_SECRET_ACCESS_KEY: 'k', OMP_NUM_THREADS: '2' });
    expect(Object.values(env)).not.toContain('k');
    expect(env).toMatchObject({ PATH: env['PATH'], CAMPAIGN_HOME: home.root, TEMPORAL_ADDRESS: 'a:1' });
  }
  const { env: own, keys } = policyServerService({ model: 'm', home, maxBatch: 1, threads: 1, dtype: 'float32' }).spec;
  expect(Object.values(own)).not.toContain('k');
  expect(keys).toMatchObject({ AWS_SECRET_ACCESS_KEY: 'k', POLICY_SERVER_API_KEY: 'k' });
  expect(KEYS.filter((name) => name in keys!)).toEqual(['POLICY_SERVER_API_KEY']);
});

test.each([
  [
    'Node',
    process.execPath,
    [
      '-r',
      './test/support/register.cjs',
      '-e',
      `require('./src/domain/secrets').takeKeys(); console.log(process.pid + ' ' + process.env.MINE); setInterval(() => {}, 1000);`,
    ],
  ],
  [
    'Python',
    resolve(__dirname, '../../../.venv/bin/python'),
    [
      '-c',
      `import os, time; from trainer.keys import take_keys; take_keys(); print(os.getpid(), os.environ["MINE"], flush=True); time.sleep(600)`,
    ],
  ],
] as const)('a service in %s reads its keys from a pipe', async (_, command, args) => {
  const folder = newFolder();
  let said = '';
  const service = new Service(
    {
      name: 'reading',
      command,
      args: () => [...args],
      env: { PATH: env['PATH'] },
      keys: { MINE: 'sk-ü' },
      isReady: (output) => (said = output.find((line) => line.includes('sk-ü')) ?? '') !== '',
      readySeconds: 60,
      graceSeconds: 1,
    },
    folder,
  );
  atEnd(() => service.stop());
  await service.start();
  expect(readFileSync(`/proc/${said.split(' ')[0]}/environ`, 'utf8')).not.toContain('sk-ü');
});
