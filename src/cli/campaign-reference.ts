/** docs/campaign-file.md: every field that a campaign file may have. It is made of the JSON schema alone, and so says what the reader of campaign files does. */
import type { JsonSchemaNode } from './campaign-schema';

const HEAD = `# Campaign files

A campaign file is YAML: \`name\`, \`target\` and \`baseModel\` are needed, every other field has a default. The defaults below are those of preset
\`paper\`, the values of the published method. Each part of the method is picked by \`kind\`, whose options stand beside it.

This page is made by \`campaign schema --markdown > docs/campaign-file.md\`; editors take the same from \`campaigns/campaign.schema.json\`.`;

/** One section for each field of the file, one table for each group of fields, or for each kind of a part. */
export function campaignReference(schema: JsonSchemaNode): string {
  const fields = Object.entries(schema.properties ?? {});
  const plain = fields.filter(([, node]) => groupsOf(node).length === 0);
  const told: Told = new Map();
  const sections = fields.flatMap(([name, node]) => (groupsOf(node).length === 0 ? [] : sectionOf(name, node, told)));
  return [HEAD, tableOf(plain.map(([name, node]) => rowOf(name, node, schema))), ...sections]
    .filter(Boolean)
    .join('\n\n')
    .concat('\n');
}

/** The objects that a field may hold, or the entries of its list. */
const groupsOf = (node: JsonSchemaNode): JsonSchemaNode[] =>
  alternativesOf(node.items ?? node).filter(({ properties }) => properties);

const alternativesOf = (node: JsonSchemaNode): JsonSchemaNode[] =>
  (node.oneOf ?? node.anyOf)?.flatMap(alternativesOf) ?? [node];

function sectionOf(name: string, node: JsonSchemaNode, told: Told): string[] {
  const { kind } = (node['default'] ?? {}) as { kind?: string };
  return [
    `## ${name}`,
    [textOf(node), ...(kind === undefined ? [] : [`Left out it is \`kind: ${kind}\`.`])].join(' '),
    ...groupsOf(node).flatMap((group) => {
      // Fields of one value tell kinds and their variants apart: `kind: builtin, name: shop`.
      const fixed = Object.entries(group.properties ?? {}).filter(([, { const: value }]) => value !== undefined);
      const title = fixed.map(([field, { const: value }]) => `${field}: ${value}`).join(', ');
      const place = title ? `${code(name)} with ${code(title)}` : code(name);
      return [title && `### ${place}`, tableOf(rowsOf(group, place, told)) || 'It has no options.'];
    }),
  ];
}

interface Row {
  fields: string[];
  cells: string[];
}

/** By group so far, its fields with all that is said of them. */
type Told = Map<string, Map<string, string>>;

/** So many fields that another group has, too, are one row that names it. */
const SHARED = 3;

/** Rows of objects within it stand under their own, with their path. */
function rowsOf(group: JsonSchemaNode, place: string, told: Told): Row[] {
  const fields = Object.entries(group.properties ?? {}).filter(([, field]) => field.const === undefined);
  const said = new Map(fields.map(([name, field]) => [name, JSON.stringify([rowOf(name, field, group), field])]));
  const sharedWith = (known: Map<string, string>) =>
    [...said.keys()].filter((name) => known.get(name) === said.get(name));
  const [like] = [...told]
    .map(([other, known]) => ({ other, shared: sharedWith(known) }))
    .sort((a, b) => b.shared.length - a.shared.length);
  told.set(place, said);
  const { other, shared } = like && like.shared.length >= SHARED ? like : { other: '', shared: [] };
  const own = fields.filter(([name]) => !shared.includes(name));
  return [
    ...own.flatMap(([name, field]) => [
      rowOf(name, field, group),
      ...groupsOf(field).flatMap((inner) =>
        rowsOf(inner, `${code(name)} of ${place}`, told).map((row) => ({
          ...row,
          fields: row.fields.map((path) => `${name}${field.items ? '[]' : ''}.${path}`),
        })),
      ),
    ]),
    ...(shared.length > 0 ? [{ fields: own.length > 0 ? shared : ['*'], cells: ['', '', `As for ${other}.`] }] : []),
  ];
}

function rowOf(name: string, node: JsonSchemaNode, parent: JsonSchemaNode): Row {
  const isNeeded = (parent['required'] as string[] | undefined)?.includes(name) ?? false;
  const value = groupsOf(node).length > 0 ? undefined : node['default'];
  const fallback = isNeeded ? 'needed' : value === undefined ? '' : code(JSON.stringify(value));
  return { fields: [name], cells: [typeOf(node), fallback, textOf(node)] };
}

function tableOf(rows: readonly Row[]): string {
  const lines = rows.map(({ fields, cells }) => [fields.map(code).join(', '), ...cells]);
  const text = (cells: string[]) => `| ${cells.map((cell) => cell.replaceAll('|', '\\|')).join(' | ')} |`;
  return rows.length === 0
    ? ''
    : ['| field | value | default | what it is |', '| --- | --- | --- | --- |', ...lines.map(text)].join('\n');
}

function typeOf(node: JsonSchemaNode): string {
  const { items, type = 'any', prefixItems } = node;
  const isGroup = groupsOf(node).length > 0;
  const values = node['enum'] as unknown[] | undefined;
  if (values) return values.map((value) => code(String(value))).join(', ');
  if (prefixItems) return 'lowest and highest';
  if (items) return `list of ${isGroup ? 'groups' : items['enum'] ? typeOf(items) : `${typeOf(items)}s`}`;
  if (isGroup) return 'group';
  if (type === 'object') return 'map';
  if (type === 'integer' && node['exclusiveMinimum'] === 0)
    return typeOf({ ...node, minimum: 1, exclusiveMinimum: undefined });
  const bound = (words: Record<string, string>) =>
    Object.entries(words).flatMap(([keyword, word]) => {
      const value = node[keyword];
      return typeof value === 'number' && Math.abs(value) < Number.MAX_SAFE_INTEGER ? [`${word} ${value}`] : [];
    })[0];
  return [
    type === 'integer' ? 'whole number' : type,
    bound({ exclusiveMinimum: 'over', minimum: 'from' }),
    bound({ exclusiveMaximum: 'under', maximum: 'to' }),
  ]
    .filter(Boolean)
    .join(' ');
}

const textOf = ({ description }: JsonSchemaNode): string => description ?? '';
const code = (text: string): string => `\`${text}\``;
