/** Writes docs/campaign-file.md and campaigns/campaign.schema.json from the schema: `make reference`. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { campaignJsonSchema, type JsonSchemaNode, openJsonSchema } from '../../src/cli/campaign-schema';

const HEAD = `# Campaign files

A campaign file is YAML, with a [schema](../campaigns/campaign.schema.json) for editors. \`name\`, \`target\`, \`baseModel\`, \`analyst\` and \`synthesizer\` are required. Paths are relative to the file. Brackets hold a field's type or its default, which is the paper's (preset \`paper\`). Without a type, a field is a string or a group. A count is an integer from 1, a share a number from 0 to 1.`;

/** One section for each field of the file, one list for each group of fields, or for each kind of a part and for what all its kinds have. */
export function campaignReference(schema: JsonSchemaNode): string {
  const fields = Object.entries(schema.properties ?? {});
  const plain = fields.filter(([, node]) => groupsOf(node).length === 0);
  const told: Told = new Map();
  const sections = fields.flatMap(([name, node]) => (groupsOf(node).length === 0 ? [] : sectionOf(name, node, told)));
  return [HEAD, listOf(plain.map(([name, node]) => rowOf(name, node, schema))), ...sections]
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
  const groups = groupsOf(node);
  const saidBy = groups.map((group) => saidOf(group));
  const [first = new Map<string, string>()] = saidBy.length > 1 ? saidBy : [];
  const common = [...first].flatMap(([field, said]) => (saidBy.every((of) => of.get(field) === said) ? [field] : []));
  const places = groups.map((group) => {
    // Fields of one value tell kinds apart: `kind: given`.
    const fixed = Object.entries(group.properties ?? {}).filter(([, { const: value }]) => value !== undefined);
    const title = code(fixed.map(([field, { const: value }]) => `${field}: ${value}`).join(', '));
    const own = fieldsOf(group).filter(([field]) => !common.includes(field));
    return { title, own, place: fixed.length > 0 ? `${code(name)} with ${title}` : code(name), group };
  });
  const bare = places.filter(({ own }) => own.length === 0).map(({ title }) => title);
  return [
    `## ${name}`,
    [
      textOf(node),
      ...(kind === undefined ? [] : [`Default: \`kind: ${kind}\`.`]),
      ...(bare.length > 0 ? [`Without ${common.length > 0 ? 'more ' : ''}options: ${bare.join(', ')}.`] : []),
      ...(common.length > 0 ? ['All kinds have:'] : []),
    ].join(' '),
    listOf(
      rowsOf(
        fieldsOf(groups[0]!).filter(([field]) => common.includes(field)),
        groups[0]!,
        code(name),
        told,
      ),
    ),
    ...places.flatMap(({ own, place, group }) =>
      own.length === 0 ? [] : [place === code(name) ? '' : `### ${place}`, listOf(rowsOf(own, group, place, told))],
    ),
  ];
}

type Field = [name: string, node: JsonSchemaNode];

/** But those that tell kinds apart. */
const fieldsOf = (group: JsonSchemaNode): Field[] =>
  Object.entries(group.properties ?? {}).filter(([, field]) => field.const === undefined);

interface Row {
  fields: string[];
  /** What they take, and what they are. */
  value?: string;
  text: string;
}

/** By group so far, its fields with all that is said of them. */
type Told = Map<string, Map<string, string>>;

/** So many fields that another group has, too, are one row that names it. */
const SHARED = 2;

/** By field, all that is said of it. */
const saidOf = (group: JsonSchemaNode): Map<string, string> =>
  new Map(fieldsOf(group).map(([name, field]) => [name, JSON.stringify([rowOf(name, field, group), field])]));

/** Rows of objects within it stand under their own, with their path. */
function rowsOf(fields: readonly Field[], group: JsonSchemaNode, place: string, told: Told): Row[] {
  const said = new Map([...saidOf(group)].filter(([name]) => fields.some(([field]) => field === name)));
  const sharedWith = (known: Map<string, string>) =>
    [...said.keys()].filter((name) => known.get(name) === said.get(name));
  const [like] = [...told]
    .map(([other, known]) => ({ other, shared: sharedWith(known) }))
    .sort((a, b) => b.shared.length - a.shared.length);
  told.set(place, said);
  const { other, shared } = like && like.shared.length >= SHARED ? like : { other: '', shared: [] };
  const own = fields.filter(([name]) => !shared.includes(name));
  const isWhole = own.length === 0 && shared.length === told.get(other)?.size;
  return [
    ...own.flatMap(([name, field]) => [
      rowOf(name, field, group),
      ...groupsOf(field).flatMap((inner) =>
        rowsOf(fieldsOf(inner), inner, `${code(name)} of ${place.replace(/^.* with /, '')}`, told).map((row) => ({
          ...row,
          fields: row.fields.map((path) => `${name}${field.items ? '[]' : ''}.${path}`),
        })),
      ),
    ]),
    ...(shared.length > 0 ? [{ fields: isWhole ? ['*'] : shared, text: `as for ${other}.` }] : []),
  ];
}

/** Types that a default shows. */
const PLAIN = ['number', 'integer', 'boolean'];
/** Types that the text of a field, or the rows below it, show. */
const PLAIN_TEXT = ['string', 'group'];

function rowOf(name: string, node: JsonSchemaNode, parent: JsonSchemaNode): Row {
  const isNeeded = (parent['required'] as string[] | undefined)?.includes(name) ?? false;
  const value = groupsOf(node).length > 0 ? undefined : node['default'];
  const shown = value === undefined ? [] : [code(JSON.stringify(value))];
  const isShown = shown.length > 0 && PLAIN.includes(node.type ?? '');
  const type = typeOf(node);
  const parts = [...(isShown || PLAIN_TEXT.includes(type) ? [] : [type]), ...(isNeeded ? ['required'] : shown)];
  return { fields: [name], value: parts.join('; '), text: textOf(node) };
}

const listOf = (rows: readonly Row[]): string =>
  rows
    .map(({ fields, value, text }) => `- ${fields.map(code).join(', ')}${value ? ` (${value})` : ''}: ${text}`)
    .join('\n');

/** Bounds from here on only catch slips: the reader of a campaign file tells them to who comes there. */
const SLIP = 1_000_000;

function typeOf(node: JsonSchemaNode): string {
  const { items, type = 'any', prefixItems } = node;
  const isGroup = groupsOf(node).length > 0;
  const values = node['enum'] as unknown[] | undefined;
  if (values) return values.map((value) => code(String(value))).join(', ');
  if (prefixItems) return 'range';
  if (items) return items['enum'] ? `list of ${typeOf(items)}` : isGroup ? 'list of groups' : 'list';
  if (isGroup) return 'group';
  if (type === 'object') return 'map';
  if (type === 'integer' && node['exclusiveMinimum'] === 0)
    return typeOf({ ...node, minimum: 1, exclusiveMinimum: undefined });
  const bound = (words: Record<string, string>) =>
    Object.entries(words).flatMap(([keyword, word]) => {
      const value = node[keyword];
      return typeof value === 'number' && Math.abs(value) < SLIP ? [`${word} ${value}`] : [];
    })[0];
  const told = [
    type,
    bound({ exclusiveMinimum: 'over', minimum: 'from' }),
    bound({ exclusiveMaximum: 'under', maximum: 'to' }),
  ]
    .filter(Boolean)
    .join(' ');
  return SHORT[told] ?? told;
}

const SHORT: Record<string, string> = { 'integer from 1': 'count', 'number from 0 to 1': 'share' };

const textOf = ({ description }: JsonSchemaNode): string => description ?? '';
const code = (text: string): string => `\`${text}\``;

if (require.main === module) {
  const root = join(__dirname, '../..');
  const schema = campaignJsonSchema();
  writeFileSync(join(root, 'docs/campaign-file.md'), campaignReference(schema));
  writeFileSync(join(root, 'campaigns/campaign.schema.json'), `${JSON.stringify(openJsonSchema(), null, 2)}\n`);
}
