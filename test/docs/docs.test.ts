/** Every link in the documentation leads to a file, and to a heading of it. */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join, normalize } from 'node:path';
import { Command } from 'commander';
import { campaignJsonSchema } from '../../src/cli/campaign-schema';
import { addCommands } from '../../src/cli/commands';
import { schemaPaths } from './schema-paths';

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

describe('names in the documentation', () => {
  /** Returns the code of a page: lines of its blocks, and code within its sentences. */
  const codeOf = (page: string): string[] =>
    readFileSync(join(root, page), 'utf8')
      .split(/```\w*\n/)
      .flatMap((part, i) =>
        i % 2 === 1 ? part.split('\n') : [...part.matchAll(/`([^`\n]+)`/g)].map(([, code]) => code!),
      );
  const program = new Command();
  const mainSource = readFileSync(join(root, 'src/cli/main.ts'), 'utf8');
  const global = [...mainSource.matchAll(/\.option\('(--[a-z-]+)/g)].map(([, name]) => name!);
  addCommands(program);
  const fields = new Set(
    schemaPaths(campaignJsonSchema()).map((path) => path.replace(/\{kind[^}]*\}$/, '.kind').replace(/\{[^}]*\}/g, '')),
  );
  const groups = new Set([...fields].filter((path) => path.includes('.')).map((path) => path.split(/[.[]/)[0]!));
  const targets = new Set(
    [...readFileSync(join(root, 'Makefile'), 'utf8').matchAll(/^([a-z0-9-]+):/gm)].map(([, name]) => name!),
  );

  function unknownNames(code: string): string[] {
    const command = /(?:^\s*|bin\/|[;&$]\s*)campaign ((?:[a-z][a-z-]*)(?: [a-z]+)*)([^|;#]*)/.exec(code);
    const words = command?.[1]?.split(' ') ?? [];
    const found = words.reduce<Command | undefined>(
      (parent, word, i) =>
        parent?.commands.find((one) => [one.name(), one.alias()].includes(word)) ?? (i === 0 ? undefined : parent),
      program,
    );
    if (command && !found) return [`campaign ${words[0]}`];
    const known = [...(found?.options ?? []), ...program.options].map(({ long }) => long).concat(global);
    const options = command ? [...command[2]!.matchAll(/(?<=\s)--[a-z-]+/g)].map(([option]) => option) : [];
    const [field] =
      /^[a-z][A-Za-z]*(?:\[\])?(?:\.[a-z][A-Za-z]*(?:\[\])?)+(?=$|: )(?<!\.(?:ts|json|log))/.exec(code) ?? [];
    const [, target] = /^make ([a-z0-9-]+)/.exec(code) ?? [];
    return [
      ...options
        .filter((option) => option !== '--help' && !known.includes(option))
        .map((option) => `${found?.name()} ${option}`),
      ...(field && groups.has(field.split(/[.[]/)[0]!) && !fields.has(field) ? [field] : []),
      ...(target && !targets.has(target) ? [`make ${target}`] : []),
    ];
  }

  test.each(pages.filter((page) => page !== 'docs/decisions.md'))(
    '%s names no command, option, field or make target that there is not',
    (page) => {
      expect(codeOf(page).flatMap(unknownNames)).toEqual([]);
    },
  );
});
