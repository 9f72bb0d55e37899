/** The bridge that docs/environments.md shows is a whole one: it is taken from the page, run, and passes the conformance checks. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { checkEnvironment } from '../../src/environments/conformance';
import { openProcessEnvironment } from '../../src/environments/process';

const root = join(__dirname, '..', '..');

test('the documented bridge keeps the contract', async () => {
  const page = readFileSync(join(root, 'docs', 'environments.md'), 'utf8');
  const [, source] = /```python\n([\s\S]*?)```/.exec(page)!;
  const folder = mkdtempSync(join(tmpdir(), 'bridge-'));
  writeFileSync(join(folder, 'bridge.py'), source!);
  const environment = openProcessEnvironment({
    command: [join(root, '.venv', 'bin', 'python'), 'bridge.py'],
    cwd: folder,
  });
  try {
    expect(await checkEnvironment(environment)).toEqual([]);
    const episode = await environment.reset({ id: 'train-0', seed: 1 });
    const toolCalls = [{ id: 'c', name: 'answer', arguments: { sum: 5 } }];
    expect(await episode.step({ role: 'assistant', content: '', toolCalls })).toMatchObject({
      messages: [{ content: 'ok' }],
    });
    expect(await episode.evaluate('max_steps')).toEqual({ reward: 1, breakdown: {} });
  } finally {
    await environment.close();
    rmSync(folder, { recursive: true, force: true });
  }
});
