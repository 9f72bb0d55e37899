/** The bridge that docs/environments.md shows is a whole one: it is taken from the page, run, and passes the conformance checks. */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Environment } from '../../src/domain/environment';
import { checkEnvironment } from '../../src/environments/conformance';
import { openProcessEnvironment } from '../../src/environments/process';
import { closedAfterwards } from '../support/opened';
import { eachTemporaryFolder } from '../support/temporary-folder';

const root = join(__dirname, '..', '..');

const documented = (): string => {
  const page = readFileSync(join(root, 'docs', 'environments.md'), 'utf8');
  return /```python\n([\s\S]*?)```/.exec(page)![1]!;
};

let folder: string;
eachTemporaryFolder((made) => (folder = made));

/** A bridge of this source, as often as it is opened. */
function bridgeOf(source: string): () => Promise<Environment> {
  writeFileSync(join(folder, 'bridge.py'), source);
  const command = [join(root, '.venv', 'bin', 'python'), 'bridge.py'];
  return () => Promise.resolve(closedAfterwards(openProcessEnvironment({ command, cwd: folder })));
}

/** Adds a reference to the bridge as the page describes it. */
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
])('the documented bridge keeps the contract, %s', async (_, source, reference) => {
  const open = bridgeOf(source);
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
