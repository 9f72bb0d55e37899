import type { JsonSchemaNode } from '../../src/cli/campaign-schema';

/**
 * Returns every field of a campaign file schema as a path, and every value that a field enumerates as `PATH=VALUE`. `{kind=llm}` after a name
 * stands for the variant of an object whose constant fields have these values; `[]` stands for an entry of a list.
 */
export function schemaPaths(node: JsonSchemaNode, path = ''): string[] {
  const values = ((node['enum'] as unknown[] | undefined) ?? []).map((value) => `${path}=${String(value)}`);
  const alternatives = [...(node.oneOf ?? []), ...(node.anyOf ?? [])].flatMap((one) => schemaPaths(one, path));
  const items = node.items ? schemaPaths(node.items, `${path}[]`) : [];
  const properties = Object.entries(node.properties ?? {});
  const constants = properties.flatMap(([name, { const: value }]) =>
    value === undefined ? [] : [`${name}=${String(value)}`],
  );
  const variant = constants.length > 0 ? `${path}{${constants.join(',')}}` : path;
  const fields = properties.flatMap(([name, field]) => {
    const inner = variant === '' ? name : `${variant}.${name}`;
    return [...(field.const === undefined ? [inner] : []), ...schemaPaths(field, inner)];
  });
  return [...new Set([...(constants.length > 0 ? [variant] : []), ...values, ...alternatives, ...items, ...fields])];
}
