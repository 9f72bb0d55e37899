import { mkdtempSync, readFileSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { parse } from 'yaml';
import { candidateSchema } from '../../../src/domain/capability';
import type { EnvironmentDescription } from '../../../src/domain/environment';
import { openModule, play } from '../../../src/sandbox/module';
import { selfTest } from '../../../src/sandbox/self-test';
import { given } from '../../../src/synthesis/given';
import type { Synthesizer } from '../../../src/synthesis/synthesizer';
import { question } from '../../fixtures/synthesis/generate';
import { failing } from '../../support/failing';
import { closedAfterwards } from '../../support/opened';
import { temporaryFolder } from '../../support/temporary-folder';

const library: EnvironmentDescription = {
  ...{ name: 'library', version: '1', policy: 'p', tools: [], maxSteps: 8, hasReference: true },
};
const fixtures = resolve(__dirname, '../..', 'fixtures', 'given');
const mock = join(fixtures, 'tau2-mock');
const capability = 'hand_over_forbidden_requests';
const home = temporaryFolder();
const folderWith = (files: Record<string, string>): string => {
  const folder = mkdtempSync(join(home, 'modules-'));
  for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, name), text);
  return folder;
};
const open = async (modules: string): Promise<Synthesizer> => given.open({ kind: 'given', modules }, undefined);

describe('given modules', () => {
  it('are handed on as they are, with the rationale of their first comments', async () => {
    const modules = folderWith({
      'a_skill.js': '// By hand.\n\n// Rationale: It teaches.\nexport const a = 1;\n',
      'b_skill.js': 'export const b = 1;\n// Rationale: not among the first comments\n',
    });
    const progress = jest.fn();
    const { write } = await open(modules);
    expect(await write(question('a_skill', library, { progress }))).toEqual({
      source: readFileSync(join(modules, 'a_skill.js'), 'utf8'),
      rationale: 'It teaches.',
    });
    expect(progress).toHaveBeenCalledWith(1, 1);
    expect((await write(question('b_skill', library))).rationale).toContain('b_skill');
  });

  it('get the tools of the target where they use targetTools, and are refused before the campaign if they do not load', async () => {
    const tool = { name: 'find_book', description: 'd', parameters: { type: 'object' as const, properties: {} } };
    const target = { ...library, tools: [tool] };
    const exports = ['describe', 'make', 'start', 'step', 'reward', 'reference', 'solve'].map(
      (name) => `export const ${name} = `,
    );
    const text = `${exports.map((one) => `${one}() => 0;`).join('\n')}`.replace(
      'describe = () => 0',
      "describe = () => ({ policy: 'p', tools: [targetTools.find_book], maxSteps: 8 })",
    );
    const good = await open(folderWith({ 'a_skill.js': text }));
    expect(await good.unsuited?.(target)).toBeUndefined();
    const { source } = await good.write(question('a_skill', target));
    expect(source).toBe(`const targetTools = ${JSON.stringify({ find_book: tool })};\n${text}`);
    for (const broken of ['export const describe = 1;', text.replace('.find_book', '.find_nothing.name')]) {
      const { unsuited } = await open(folderWith({ 'a_skill.js': broken }));
      await expect(unsuited!(target)).rejects.toMatchObject(failing('BadInput', 'a_skill.js'));
    }
  });

  it('are known by what they held when the folder was opened, not by where they lie', async () => {
    const text = { 'a_skill.js': 'export const a = 1;\n' };
    const modules = folderWith(text);
    const one = await open(modules);
    const copy = await open(folderWith({ ...text, 'notes.md': 'no module' }));
    writeFileSync(join(modules, 'a_skill.js'), 'export const a = 2;\n');
    expect(one.identity).toMatchObject({ kind: 'given', version: '1' });
    expect(copy.identity).toEqual(one.identity);
    expect((await open(modules)).identity).not.toEqual(one.identity);
    expect((await one.write(question('a_skill', library))).source).toBe('export const a = 1;\n');
  });

  it('are refused where the folder, or the module of a capability, is missing', async () => {
    for (const folder of [join(home, 'none'), folderWith({ 'notes.md': '' })])
      await expect(open(folder)).rejects.toMatchObject({ type: 'BadInput' });
    const { write } = await open(folderWith({ 'a_skill.js': '', 'c_skill.js': '' }));
    const refused = { type: 'CannotSynthesize', message: expect.stringContaining('b_skill.js') };
    await expect(write(question('b_skill', library))).rejects.toMatchObject(refused);
  });
});

describe('examples', () => {
  it('for tau2-bench, mock domain: the module passes the self-test and gives credit in levels', async () => {
    const { capabilities } = parse(readFileSync(`${mock}.yaml`, 'utf8')) as { capabilities: object[] };
    const [candidate] = capabilities.map((one) => candidateSchema.parse({ examples: [], ...one }));
    expect(candidate?.name).toBe(capability);
    const { write } = await open(mock);
    const { source } = await write({ ...question(capability, library), candidate: candidate! });
    expect(await selfTest({ source })).toEqual({ passed: true, findings: [] });
    const module = closedAfterwards(openModule({ source }));
    const levels = new Set<number>();
    for (let seed = 0; seed < 10; seed += 1) {
      const [call, answer] = await module.solve(seed);
      for (const script of [[], [call!], [answer!], [call!, answer!]])
        levels.add((await play(module, { seed, script })).reward);
    }
    expect([...levels].sort()).toEqual([0, 0.1, expect.closeTo(0.15), 1]);
  });
});
