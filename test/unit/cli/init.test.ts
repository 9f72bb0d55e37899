import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { loadCampaign } from '../../../src/cli/campaign-file';
import { init } from '../../../src/cli/init';
import { readTasks } from '../../../src/environments/agent/tasks';
import { repository } from '../../support/campaign-run';
import { newFolder } from '../../support/temporary-folder';

const baseModel = join(repository, 'models/base');
const llm = { url: 'http://127.0.0.1:8001/v1', model: 'some-model' };
const common = { home: '.campaigns', yes: true, baseModel, ...llm };
beforeEach(() => void jest.spyOn(process.stdout, 'write').mockReturnValue(true));
afterEach(() => jest.restoreAllMocks());

/** Writes tasks into a new folder, begins a campaign beside them and returns the campaign as `run` reads it, and its tasks. */
async function begin(name: string, text: string) {
  const folder = newFolder();
  writeFileSync(join(folder, name), text);
  await init(folder, { ...common, agent: 'python3 "my agent.py" --fast', tasks: join(folder, name) });
  const { tasks } = await readTasks(join(folder, 'tasks.jsonl'));
  return { campaign: loadCampaign({ file: join(folder, 'campaign.yaml') }), tasks: [...tasks.values()] };
}

test('a CSV file becomes tasks with an id and a split each', async () => {
  const { campaign, tasks } = await begin('tickets.csv', 'prompt,id\n"a, b",7\nc,8\nd,9\n');
  expect(campaign).toMatchObject({
    target: { kind: 'agent', command: ['python3', 'my agent.py', '--fast'] },
    analyst: { kind: 'llm', ...llm },
    synthesizer: { kind: 'llm', ...llm },
  });
  expect(tasks).toEqual([
    { id: '7', split: 'train', prompt: 'a, b' },
    { id: '8', split: 'train', prompt: 'c' },
    { id: '9', split: 'test', prompt: 'd' },
  ]);
});

test('JSON lines keep their ids, splits and fields', async () => {
  const lines = [
    { id: 'a', split: 'test', x: [1] },
    { id: 'b', split: 'train' },
  ];
  const { tasks } = await begin('mine.jsonl', lines.map((line) => JSON.stringify(line)).join('\n'));
  expect(tasks).toEqual(lines);
});

test('without a program it writes the example, whose files are those of the repository', async () => {
  const folder = newFolder();
  await init(folder, common);
  const file = join(folder, 'campaign.yaml');
  expect(loadCampaign({ file })).toMatchObject({ target: { kind: 'agent', command: ['python3', 'agent.py'] } });
  for (const name of ['agent.py', 'policy.md', 'grade.py', 'tasks.jsonl'])
    expect(readFileSync(join(folder, name))).toEqual(readFileSync(join(repository, 'examples/triage', name)));
  const problem = { code: 'invalid_argument', field: 'dir', value: folder };
  await expect(init(folder, common)).rejects.toMatchObject({ problems: [problem] });
});

test.each([
  ['a file that is not there', undefined],
  ['a line that is not JSON', '{"id": 1\n'],
  ['a split that does not exist', '{"split": "dev"}\n{}\n'],
  ['one task', '{"id": "a"}\n'],
])('%s is refused, and nothing is written', async (_, text) => {
  const folder = newFolder();
  const tasks = join(folder, 'in.jsonl');
  if (text !== undefined) writeFileSync(tasks, text);
  const begun = init(join(folder, 'new'), { ...common, agent: 'agent', tasks });
  const problem = { code: 'invalid_argument', field: '--tasks', value: tasks };
  await expect(begun).rejects.toMatchObject({ problems: [problem] });
  expect(() => readFileSync(join(folder, 'new/campaign.yaml'))).toThrow('ENOENT');
});
