/** The bridge that docs/environments.md shows is a whole one: it is taken from the page, run, and passes the conformance checks. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { checkEnvironment } from '../../src/environments/conformance';
import { openProcessEnvironment } from '../../src/environments/process';

const root = join(__dirname, '..', '..');

const documented = (): string => {
  const page = readFileSync(join(root, 'docs', 'environments.md'), 'utf8');
  return /```python\n([\s\S]*?)```/.exec(page)![1]!;
};

/** With the reference that the page says how to tell. */
const withReference = (source: string): string =>
  source
    .replace('"hasReference": False', '"hasReference": True')
    .replace(
      '"breakdown": {}}',
      '"breakdown": {}, "reference": {"actions": [{"name": "answer", "arguments": {"sum": episodes[params["episode"]]["wanted"]}}], "tell": []}}',
    );

test.each([
  ['as it is', documented(), {}],
  ['with a reference', withReference(documented()), { actions: [{ name: 'answer', arguments: { sum: 5 } }], tell: [] }],
])(
  'the documented bridge keeps the contract, %s',
  async (_, source, reference) => {
    const folder = mkdtempSync(join(tmpdir(), 'bridge-'));
    writeFileSync(join(folder, 'bridge.py'), source);
    const open = async () =>
      openProcessEnvironment({ command: [join(root, '.venv', 'bin', 'python'), 'bridge.py'], cwd: folder });
    const environment = await open();
    try {
      expect(await checkEnvironment(environment, { again: open })).toEqual([]);
      const episode = await environment.reset({ id: 'train-0', seed: 1 });
      const toolCalls = [{ id: 'c', name: 'answer', arguments: { sum: 5 } }];
      expect(await episode.step({ role: 'assistant', content: '', toolCalls })).toMatchObject({
        messages: [{ content: 'ok' }],
      });
      expect(await episode.evaluate('max_steps')).toMatchObject(
        'actions' in reference ? { reward: 1, reference } : { reward: 1, breakdown: {} },
      );
    } finally {
      await environment.close();
      rmSync(folder, { recursive: true, force: true });
    }
  },
  20_000,
);
