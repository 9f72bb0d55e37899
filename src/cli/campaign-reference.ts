/**
 * docs/campaign-file.md: every field that a campaign file may have. Invariant: it is made of the JSON schema alone, so that it says what the reader
 * of campaign files does.
 */
import type { JsonSchemaNode } from './campaign-schema';

const HEAD = `# Campaign files

A campaign file is YAML: \`name\`, \`target\` and \`baseModel\` are needed, every other field has a default. The defaults below are those of preset
\`paper\`, the values of the published method. Each part of the method is picked by \`kind\`, whose options stand beside it.

This page is made by \`campaign schema --markdown > docs/campaign-file.md\`; editors take the same from \`campaigns/campaign.schema.json\`.
`;

/** One section for each field of the file, one table for each group of fields, or for each kind of a part. */
export function campaignReference(schema: JsonSchemaNode): string {
  const fields = Object.entries(schema.properties ?? {});
  const plain = fields.filter(([, node]) => groupsOf(node).length === 0);
  const required = requiredOf(schema);
  return [
    HEAD.trimEnd(),
    tableOf(plain.map(([name, node]) => rowOf(name, node, required))),
    ...fields.flatMap(([name, node]) => sectionOf(name, node)),
  ]
    .filter(Boolean)
    .join('\n\n')
    .concat('\n');
}

interface Group {
  /** Of a part: its kind, and what tells variants of it apart. */
  title?: string | undefined;
  node: JsonSchemaNode;
}

/** The objects that a field may hold, or the entries of its list. */
function groupsOf(node: JsonSchemaNode): Group[] {
  const inner = node.items ?? node;
  const all = alternativesOf(inner).filter(({ properties }) => properties);
  return all.map((one) => ({ title: titleOf(one), node: one }));
}

const alternativesOf = (node: JsonSchemaNode): JsonSchemaNode[] => {
  const all = node.oneOf ?? node.anyOf;
  return all ? all.flatMap(alternativesOf) : [node];
};

/** `kind: builtin, name: shop`: the fields that have one value. */
function titleOf({ properties = {} }: JsonSchemaNode): string | undefined {
  const fixed = Object.entries(properties).filter(([, { const: value }]) => value !== undefined);
  return fixed.length === 0 ? undefined : fixed.map(([name, { const: value }]) => `${name}: ${value}`).join(', ');
}

function sectionOf(name: string, node: JsonSchemaNode): string[] {
  const groups = groupsOf(node);
  if (groups.length === 0) return [];
  return [
    `## ${name}`,
    [textOf(node), defaultKind(node)].filter(Boolean).join(' '),
    ...groups.flatMap(({ title, node: group }) => [
      title === undefined ? '' : `### \`${name}\` with \`${title}\``,
      tableOf(rowsOf('', group)) || 'It has no options.',
    ]),
  ];
}

/** Of a part that the file may leave out. */
function defaultKind(node: JsonSchemaNode): string {
  const { kind } = (node['default'] ?? {}) as { kind?: string };
  return kind === undefined ? '' : `Left out it is \`kind: ${kind}\`.`;
}

/** Those of objects within it stand under it, with their path. */
function rowsOf(path: string, node: JsonSchemaNode): string[] {
  const required = requiredOf(node);
  return Object.entries(node.properties ?? {}).flatMap(([name, field]) => {
    if (field.const !== undefined) return [];
    const inner = groupsOf(field);
    const entry = field.items ? '[]' : '';
    const full = `${path}${name}`;
    return [rowOf(full, field, required, name), ...inner.flatMap((group) => rowsOf(`${full}${entry}.`, group.node))];
  });
}

const requiredOf = ({ required }: JsonSchemaNode): ReadonlySet<unknown> => new Set(required as unknown[] | undefined);

function rowOf(path: string, node: JsonSchemaNode, required: ReadonlySet<unknown>, name = path): string {
  const value = node['default'];
  const isGroup = groupsOf(node).length > 0;
  const fallback = required.has(name) ? 'needed' : value === undefined || isGroup ? '' : code(JSON.stringify(value));
  return `| ${code(path)} | ${cell(typeOf(node))} | ${cell(fallback)} | ${cell(textOf(node))} |`;
}

const tableOf = (rows: readonly string[]): string =>
  rows.length === 0
    ? ''
    : ['| field | value | default | what it is |', '| --- | --- | --- | --- |', ...rows].join('\n');

function typeOf(node: JsonSchemaNode): string {
  const values = node['enum'] as unknown[] | undefined;
  if (values) return values.map((value) => code(String(value))).join(', ');
  if (node.prefixItems) return 'lowest and highest';
  if (node.items)
    return groupsOf(node).length > 0
      ? 'list of groups'
      : `list of ${node.items['enum'] ? typeOf(node.items) : `${typeOf(node.items)}s`}`;
  if (groupsOf(node).length > 0) return 'group';
  if (node.type === 'object') return 'map';
  return [node.type === 'integer' ? 'whole number' : (node.type ?? 'any'), boundsOf(node)].filter(Boolean).join(' ');
}

function boundsOf(node: JsonSchemaNode): string {
  const [over, from] = [node['exclusiveMinimum'], node['minimum']];
  const [under, to] = [node['exclusiveMaximum'], node['maximum']];
  const isBound = (value: unknown) => typeof value === 'number' && Math.abs(value) < Number.MAX_SAFE_INTEGER;
  return [
    isBound(over) ? `over ${over}` : isBound(from) ? `from ${from}` : '',
    isBound(under) ? `under ${under}` : isBound(to) ? `to ${to}` : '',
  ]
    .filter(Boolean)
    .join(' ');
}

const textOf = ({ description }: JsonSchemaNode): string => String(description ?? '');
const code = (text: string): string => `\`${text}\``;
const cell = (text: string): string => text.replaceAll('|', '\\|');
