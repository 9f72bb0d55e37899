/** A program's contents decide its results. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { agent } from '../../../src/environments/agent/kind';
import { newFolder } from '../../support/temporary-folder';

test('what a program is made of changes with its files and its tasks, and with nothing else', async () => {
  const folder = newFolder();
  const write = (name: string, text: string) => writeFileSync(join(folder, name), text);
  const contents = () => {
    const spec = { kind: 'agent', command: ['node', 'mine.mjs'], grader: ['sh', 'grade.sh'], folder };
    return agent.contents!({ ...spec, tasks: join(folder, 'tasks.jsonl') });
  };
  await expect(contents()).rejects.toThrow('tasks.jsonl');
  for (const name of ['mine.mjs', 'grade.sh', 'beside']) write(name, 'one');
  write('tasks.jsonl', '{"id":"a","split":"train"}');
  let last = await contents();
  for (const [name, text] of [
    ['mine.mjs', 'two'],
    ['grade.sh', 'two'],
    ['tasks.jsonl', '{"id":"b","split":"train"}'],
  ]) {
    write(name!, text!);
    const now = await contents();
    expect(now).not.toBe(last);
    last = now;
  }
  write('beside', 'two');
  expect(await contents()).toBe(last);
});
