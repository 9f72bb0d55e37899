/** The vLLM server that a shipped campaign file describes in its comment is the one of its fields. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { loadCampaign } from '../../src/cli/campaign-file';

const folder = join(__dirname, '../../campaigns');
const files = readdirSync(folder)
  .filter((name) => name.endsWith('.yaml'))
  .map((name) => join(folder, name))
  .filter((file) => readFileSync(file, 'utf8').includes('vllm serve'));

test('there are such files', () => expect(files).not.toEqual([]));

test.each(files)('%s', (file) => {
  const { policyServer, training } = loadCampaign({ file });
  const [, command = ''] = /vllm serve ((?:.*\\\n# *)*.*)/.exec(readFileSync(file, 'utf8')) ?? [];
  const [model, ...words] = command.replace(/\\\n#/g, ' ').trim().split(/\s+/);
  const valuesOf = (flag: string) => {
    const after = words.slice(words.indexOf(flag) + 1);
    return words.includes(flag) ? after.slice(0, after.findIndex((word) => word.startsWith('--')) >>> 0) : ['1'];
  };
  expect(policyServer).toMatchObject({
    kind: 'vllm',
    model,
    contextTokens: Number(valuesOf('--max-model-len')),
  });
  expect(valuesOf('--lora-target-modules')).toEqual(training.lora.targetModules);
  expect(Number(valuesOf('--max-lora-rank'))).toBeGreaterThanOrEqual(training.lora.r);
});
