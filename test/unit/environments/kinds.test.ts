/** Kinds of environments: opened by what they tell of themselves, whoever they are from. */
import { writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { specOfArguments } from '../../../src/cli/environment-check';
import { UserError } from '../../../src/cli/errors';
import { agent } from '../../../src/environments/agent/kind';
import { newFolder } from '../../support/temporary-folder';

describe('arguments of `campaign env check`', () => {
  const limits = { processes: 1, silenceSeconds: 120 };
  const of = (...args: string[]) => specOfArguments({ args, separated: false });

  const program = { kind: 'process', cwd: resolve('.'), ...limits };
  const folder = resolve('checkout');
  test.each([
    [['tau2', 'retail', 'airline'], { kind: 'tau2', domains: ['retail', 'airline'], ...limits }],
    [['toolsandbox', 'checkout'], { kind: 'toolsandbox', folder, heldOut: 0, ...limits }],
    [['node', 'env.js'], { ...program, command: ['node', 'env.js'] }],
  ])('%j name an environment', (args, spec) => expect(of(...args)).toEqual(spec));

  test('name a program after --, whatever it is called', () => {
    expect(specOfArguments({ args: ['tau2'], separated: true })).toEqual({ ...program, command: ['tau2'] });
  });

  test.each([[], ['tau2'], ['tau2', 'retial'], ['toolsandbox', 'a', 'b']].map((args) => [args]))(
    '%j is an error',
    (args) => {
      expect(() => of(...args)).toThrow(UserError);
    },
  );
});

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
