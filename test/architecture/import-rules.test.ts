/** Tests what the import rules of `eslint.config.mjs` cannot see. */
import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';
import ts from 'typescript';

const root = resolve(__dirname, '../..');
const source = resolve(root, 'src');

test('docs/development.md has an entry for each folder of src', () => {
  const page = readFileSync(resolve(root, 'docs/development.md'), 'utf8');
  const rows = page.match(/^- `src.*$/gm)?.join() ?? '';
  const folders = readdirSync(source, { withFileTypes: true }).filter((entry) => entry.isDirectory());
  expect(folders.map(({ name }) => name).filter((name) => !rows.includes(`\`src/${name}\``))).toEqual([]);
});

test('src names no example: each is a plug-in', () => {
  const files = readdirSync(source, { recursive: true, encoding: 'utf8' }).filter((file) => file.endsWith('.ts'));
  const named = files.filter((file) =>
    /\bshop\b|\bgenerators\b|'rules'|examples\/shop/i.test(readFileSync(resolve(source, file), 'utf8')),
  );
  // It names what a field of 0.2 became.
  expect(named).toEqual(['cli/removed-fields.ts']);
});

/** Returns the imports of each file of src and web/src, those of types included. */
function importGraph(): Map<string, Set<string>> {
  const found = ts.sys.readDirectory(root, ['.ts', '.tsx', '.js'], [], ['src', 'web/src']);
  const files = new Set(found.map((path) => relative(root, path)));
  const importsOf = (file: string) =>
    ts.preProcessFile(readFileSync(resolve(root, file), 'utf8')).importedFiles.flatMap(({ fileName }) => {
      const path = join(dirname(file), fileName);
      return ['', '.ts', '.tsx', '/index.ts'].map((end) => path + end).filter((each) => files.has(each));
    });
  return new Map([...files].map((file) => [file, new Set(importsOf(file))]));
}

function* circlesIn(graph: ReadonlyMap<string, ReadonlySet<string>>): Generator<string[]> {
  const seen = new Set<string>();
  function* walk(node: string, path: string[]): Generator<string[]> {
    if (path.includes(node)) yield [...path.slice(path.indexOf(node)), node];
    if (seen.has(node)) return;
    seen.add(node);
    for (const next of graph.get(node)!) yield* walk(next, [...path, node]);
  }
  for (const node of graph.keys()) yield* walk(node, []);
}

test('no files and no folders import each other in a circle', () => {
  const files = importGraph();
  expect(circlesIn(files).next().value ?? []).toEqual([]);
  const topFolder = (file: string) => file.split('/').slice(0, 2).join('/');
  for (const folderOf of [topFolder, dirname]) {
    const folders = new Map([...files.keys()].map((file) => [folderOf(file), new Set<string>()]));
    for (const [file, imports] of files)
      for (const [folder, other] of [...imports].map((one) => [folderOf(file), folderOf(one)] as const))
        // The index of a folder joins the folders in it, which import the folder's interface.
        if (!`${folder}/`.startsWith(`${other}/`) && !`${other}/`.startsWith(`${folder}/`))
          folders.get(folder)!.add(other);
    expect(circlesIn(folders).next().value ?? []).toEqual([]);
  }
});
