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
  const sections = fields.flatMap(([name, node]) => (groupsOf(node).length === 0 ? [] : sectionOf(name, node)));
  return [HEAD, tableOf(plain.map(([name, node]) => rowOf(name, node, schema, name))), ...sections]
    .filter(Boolean)
    .join('\n\n')
    .concat('\n');
}

/** The objects that a field may hold, or the entries of its list. */
const groupsOf = (node: JsonSchemaNode): JsonSchemaNode[] =>
  alternativesOf(node.items ?? node).filter(({ properties }) => properties);

const alternativesOf = (node: JsonSchemaNode): JsonSchemaNode[] =>
  (node.oneOf ?? node.anyOf)?.flatMap(alternativesOf) ?? [node];

function sectionOf(name: string, node: JsonSchemaNode): string[] {
  const { kind } = (node['default'] ?? {}) as { kind?: string };
  return [
    `## ${name}`,
    [textOf(node), ...(kind === undefined ? [] : [`Left out it is \`kind: ${kind}\`.`])].join(' '),
    ...groupsOf(node).flatMap((group) => {
      // Fields of one value tell kinds and their variants apart: `kind: builtin, name: shop`.
      const fixed = Object.entries(group.properties ?? {}).filter(([, { const: value }]) => value !== undefined);
      const title = fixed.map(([field, { const: value }]) => `${field}: ${value}`).join(', ');
      return [title && `### \`${name}\` with \`${title}\``, tableOf(rowsOf('', group)) || 'It has no options.'];
    }),
  ];
}

/** Those of objects within it stand under it, with their path. */
const rowsOf = (path: string, node: JsonSchemaNode): string[] =>
  Object.entries(node.properties ?? {}).flatMap(([name, field]) => {
    if (field.const !== undefined) return [];
    const inner = `${path}${name}${field.items ? '[]' : ''}.`;
    return [rowOf(`${path}${name}`, field, node, name), ...groupsOf(field).flatMap((group) => rowsOf(inner, group))];
  });

function rowOf(path: string, node: JsonSchemaNode, parent: JsonSchemaNode, name: string): string {
  const isNeeded = (parent['required'] as string[] | undefined)?.includes(name) ?? false;
  const value = groupsOf(node).length > 0 ? undefined : node['default'];
  const fallback = isNeeded ? 'needed' : value === undefined ? '' : code(JSON.stringify(value));
  const cells = [code(path), typeOf(node), fallback, textOf(node)];
  return `| ${cells.map((text) => text.replaceAll('|', '\\|')).join(' | ')} |`;
}

const tableOf = (rows: readonly string[]): string =>
  rows.length === 0
    ? ''
    : ['| field | value | default | what it is |', '| --- | --- | --- | --- |', ...rows].join('\n');

function typeOf(node: JsonSchemaNode): string {
  const { items, type = 'any', prefixItems } = node;
  const isGroup = groupsOf(node).length > 0;
  const values = node['enum'] as unknown[] | undefined;
  if (values) return values.map((value) => code(String(value))).join(', ');
  if (prefixItems) return 'lowest and highest';
  if (items) return `list of ${isGroup ? 'groups' : items['enum'] ? typeOf(items) : `${typeOf(items)}s`}`;
  if (isGroup) return 'group';
  if (type === 'object') return 'map';
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
