/** Files of tasks of an agent: a bad line is named. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { readTasks } from '../../../src/environments/agent/tasks';
import { newFolder } from '../../support/temporary-folder';

it.each([
  ['{"id":"b","split":"train","prompt":"cut \\ud83d"}', /line 2: prompt.* holds half/],
  ['{"id":"b \\udc00","split":"train"}', /line 2: id.* holds half/],
])('%s is no text in Unicode', async (line, problem) => {
  const file = join(newFolder(), 'tasks.jsonl');
  writeFileSync(file, `{"id":"a","split":"test","prompt":"whole \\ud83d\\ude00"}\n${line}\n`);
  await expect(readTasks(file)).rejects.toMatchObject({ type: 'BadInput', message: expect.stringMatching(problem) });
});
