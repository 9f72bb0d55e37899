/** What is missing is named with the way to get it. */
import { chmodSync, mkdirSync, mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { checkModel, checkPolicyServer, checkTarget } from '../../src/cli/checks/campaign';
import { requireAll } from '../../src/cli/checks/check';
import { checkBuild, checkHome, checkMemory, checkNode, freePort } from '../../src/cli/checks/machine';
import { checkPython } from '../../src/cli/checks/python';
import { doctorLines } from '../../src/cli/doctor';
import { homeAt } from '../../src/cli/project';
import { campaignSchema, type EnvironmentSpec } from '../../src/domain/campaign';

const temporary = () => mkdtempSync(join(tmpdir(), 'doctor-'));
const campaign = (over: { model?: string; target?: EnvironmentSpec; url?: string } = {}) =>
  campaignSchema.parse({
    name: 'x',
    target: over.target ?? { kind: 'builtin', name: 'shop' },
    baseModel: { path: over.model ?? temporary() },
    ...(over.url && { policyServer: { kind: 'vllm', url: over.url } }),
  });

/** An executable that stands for a Python and answers the probe as one would. */
function pythonThatSays(text: string): string {
  const file = join(temporary(), 'python');
  writeFileSync(file, `#!/bin/sh\necho '${text}'\n`);
  chmodSync(file, 0o755);
  return file;
}

describe('Python', () => {
  it('that is missing', async () => {
    const [check] = await checkPython('/no/python');
    expect(check).toMatchObject({ ok: false, detail: 'there is no /no/python' });
    expect(check?.fix).toContain('make install');
  });

  it('that is too old', async () => {
    const [check] = await checkPython(pythonThatSays('{"python": [3, 9, 1], "packages": {}}'));
    expect(check).toMatchObject({ ok: false, fix: 'run `make install`, which finds or fetches Python 3.11 or newer' });
    expect(check?.detail).toMatch(/is version 3\.9\.1$/);
  });

  it('that does not run', async () => {
    const [check] = await checkPython(pythonThatSays('not JSON'));
    expect(check).toMatchObject({ ok: false });
    expect(check?.detail).toContain('does not run');
  });

  it('that lacks packages or has others', async () => {
    const packages = '{"python": [3, 11, 1], "packages": {"torch": "2.13.0+cpu", "trl": "0.1"}}';
    const [interpreter, check] = await checkPython(pythonThatSays(packages));
    expect(interpreter?.ok).toBe(true);
    expect(check?.ok).toBe(false);
    expect(check?.detail).toContain('trl is 0.1, not 1.16.0');
    expect(check?.detail).toContain('peft is missing');
    expect(check?.detail).not.toContain('torch');
  });
});

describe('a campaign’s needs', () => {
  it('a model folder that is not there', () => {
    expect(checkModel(campaign({ model: '/no/model' }))).toMatchObject({
      ok: false,
      detail: 'there is no folder /no/model',
      fix: 'make one with `make base-model`, or correct baseModel.path in the campaign file',
    });
  });

  it('a model folder that is not whole', () => {
    const model = temporary();
    writeFileSync(join(model, 'config.json'), '{}');
    expect(checkModel(campaign({ model })).detail).toBe(`${model} lacks weights (*.safetensors), a tokenizer`);
    for (const file of ['model.safetensors', 'tokenizer.json']) writeFileSync(join(model, file), '');
    expect(checkModel(campaign({ model })).ok).toBe(true);
  });

  it('a target that describes itself', async () => {
    const check = await checkTarget(campaign(), homeAt(temporary()));
    expect(check).toMatchObject({ ok: true, detail: expect.stringContaining('shop') });
  });

  it('a target command that dies', async () => {
    const command = [process.execPath, '-e', "console.error('no database'); process.exit(7)"];
    const check = await checkTarget(
      campaign({ target: { kind: 'process', command, processes: 1 } }),
      homeAt(temporary()),
    );
    expect(check.ok).toBe(false);
    expect(check.detail).toMatch(/does not describe itself: .*(exit code 7|no database)/);
    expect(check.fix).toContain('campaign env check --');
  });

  it('a policy server that does not answer', async () => {
    const url = `http://127.0.0.1:${await freePort()}`;
    expect(await checkPolicyServer(campaign({ url }))).toMatchObject({
      ok: false,
      detail: expect.stringContaining(`${url}: `),
      fix: 'start it, or correct policyServer.url in the campaign file',
    });
  });
});

describe('the machine', () => {
  it('versions and sizes', () => {
    expect(checkNode('20.19.0').ok).toBe(true);
    expect(checkNode('22.1.0').ok).toBe(true);
    expect(checkNode('20.18.3')).toMatchObject({ ok: false, fix: 'install Node 20.19 or newer' });
    expect(checkMemory(4 * 1024 ** 3).ok).toBe(false);
    expect(checkMemory(6 * 1024 ** 3).ok).toBe(true);
  });

  it('a project that is not built', () => {
    expect(checkBuild(temporary())).toMatchObject({ ok: false, fix: 'run `make build`' });
  });

  it('a home that cannot be a folder', () => {
    const folder = temporary();
    writeFileSync(join(folder, 'file'), '');
    expect(checkHome(homeAt(join(folder, 'file/home')))).toMatchObject({ ok: false });
    mkdirSync(join(folder, 'there'));
    expect(checkHome(homeAt(join(folder, 'there/later'))).ok).toBe(true);
  });
});

it('what is missing is one line, first in the error', () => {
  const checks = [checkNode('20.19.0'), checkNode('18.1.0'), checkBuild(temporary())];
  expect(() => requireAll(checks)).toThrow('Node: version 18.1.0; install Node 20.19 or newer');
  expect(doctorLines(checks)).toEqual([
    'ok       Node   20.19.0',
    'missing  Node   version 18.1.0; install Node 20.19 or newer',
    'missing  build  dist/workers/control.js is missing; run `make build`',
  ]);
});
