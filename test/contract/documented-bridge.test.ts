/** The bridge that docs/environments.md shows is a whole one: it is taken from the page, run, and passes the conformance checks. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Environment } from '../../src/domain/environment';
import { checkEnvironment } from '../../src/environments/conformance';
import { openProcessEnvironment } from '../../src/environments/process';

const root = join(__dirname, '..', '..');

const documented = (): string => {
  const page = readFileSync(join(root, 'docs', 'environments.md'), 'utf8');
  return /```python\n([\s\S]*?)```/.exec(page)![1]!;
};

async function withBridge(source: string, work: (open: () => Promise<Environment>) => Promise<void>): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'bridge-'));
  writeFileSync(join(folder, 'bridge.py'), source);
  const opened: Environment[] = [];
  try {
    await work(async () => {
      const command = [join(root, '.venv', 'bin', 'python'), 'bridge.py'];
      const environment = openProcessEnvironment({ command, cwd: folder });
      opened.push(environment);
      return environment;
    });
  } finally {
    for (const environment of opened) await environment.close();
    rmSync(folder, { recursive: true, force: true });
  }
}

/** With the reference that the page says how to tell. */
const withReference = (source: string): string =>
  source
    .replace('"hasReference": False', '"hasReference": True')
    .replace(
      '"breakdown": {}}',
      '"breakdown": {}, "reference": {"actions": [{"name": "answer", "arguments": {"sum": episodes[params["episode"]]["wanted"]}}], "tell": []}}',
    );

test('as the page says, it gives an id again once it forgets closed episodes', async () => {
  await withBridge(
    documented().replace('episodes[params["episode"]] = None', 'del episodes[params["episode"]]'),
    async (open) => {
      const environment = await open();
      const findings = await checkEnvironment(environment);
      expect(findings).toEqual([
        {
          check: 'reset',
          problem: expect.stringContaining('"1" is the id of an episode that is still open'),
          fix: 'give every episode an id of its own',
        },
      ]);
    },
  );
});

test.each([
  ['as it is', documented(), {}],
  ['with a reference', withReference(documented()), { actions: [{ name: 'answer', arguments: { sum: 5 } }], tell: [] }],
])(
  'the documented bridge keeps the contract, %s',
  async (_, source, reference) => {
    await withBridge(source, async (open) => {
      const environment = await open();
      expect(await checkEnvironment(environment, { again: open })).toEqual([]);
      const episode = await environment.reset({ id: 'train-2', seed: 1 });
      const toolCalls = [{ id: 'c', name: 'answer', arguments: { sum: 5 } }];
      expect(await episode.step({ role: 'assistant', content: '', toolCalls })).toMatchObject({
        messages: [{ content: 'ok' }],
      });
      expect(await episode.evaluate('max_steps')).toMatchObject(
        'actions' in reference ? { reward: 1, reference } : { reward: 1, breakdown: {} },
      );
    });
  },
  20_000,
);
