/** Every link in the documentation leads to a file, and to a heading of it. */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join, normalize } from 'node:path';

const root = join(__dirname, '../..');
const pages = ['README.md', 'AGENTS.md', ...readdirSync(join(root, 'docs')).map((name) => `docs/${name}`)].filter(
  (name) => name.endsWith('.md'),
);

/** As GitHub names them. */
const anchorOf = (heading: string): string =>
  heading
    .trim()
    .toLowerCase()
    .replace(/[^\w\- ]/g, '')
    .replaceAll(' ', '-');

function brokenLinks(page: string): string[] {
  const text = readFileSync(join(root, page), 'utf8').replace(/```[\s\S]*?```/g, '');
  return [...text.matchAll(/\]\(([^)#\s]*)(?:#([^)]*))?\)/g)].flatMap(([, path = '', anchor]) => {
    if (/^https?:/.test(path)) return [];
    const file = path === '' ? page : normalize(join(page, '..', path));
    if (!existsSync(join(root, file))) return [`${page}: ${path}`];
    if (anchor === undefined || !file.endsWith('.md')) return [];
    const headings = [...readFileSync(join(root, file), 'utf8').matchAll(/^#+ (.*)$/gm)].map(
      ([, heading = '']) => heading,
    );
    return headings.some((heading) => anchorOf(heading) === anchor) ? [] : [`${page}: ${path}#${anchor}`];
  });
}

test.each(pages)('%s has no broken link', (page) => {
  expect(brokenLinks(page)).toEqual([]);
});
