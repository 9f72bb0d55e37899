/** The JSON schema of campaign files: for editors, and for naming the nearest field when one is mistyped. */
import { z } from 'zod';
import { campaignSchema } from '../domain/campaign';
import { presetNames } from '../domain/presets';

export interface JsonSchemaNode {
  type?: string;
  properties?: Record<string, JsonSchemaNode>;
  items?: JsonSchemaNode;
  oneOf?: JsonSchemaNode[];
  anyOf?: JsonSchemaNode[];
  [keyword: string]: unknown;
}

/** Schema of a campaign file: the campaign's fields and `preset`. */
export function campaignJsonSchema(): JsonSchemaNode {
  // A sandboxed target is a reference to an artifact: made by a campaign, never written into a file by hand.
  const { $schema, ...schema } = z.toJSONSchema(campaignSchema, {
    io: 'input',
    unrepresentable: 'any',
  }) as JsonSchemaNode;
  return {
    $schema,
    title: 'campaign file',
    ...schema,
    properties: {
      preset: {
        type: 'string',
        enum: [...presetNames],
        default: 'paper',
        description: 'Values for the fields that this file leaves out.',
      },
      ...schema.properties,
    },
  };
}

/** Field names that the schema knows at a path; empty where it is not an object. */
export function knownFields(path: readonly PropertyKey[]): string[] {
  let nodes: JsonSchemaNode[] = [campaignJsonSchema()];
  for (const key of path) {
    nodes = nodes.flatMap(alternatives).flatMap((node) => {
      const next = typeof key === 'number' ? node.items : node.properties?.[String(key)];
      return next ? [next] : [];
    });
  }
  return [...new Set(nodes.flatMap(alternatives).flatMap((node) => Object.keys(node.properties ?? {})))];
}

const alternatives = (node: JsonSchemaNode): JsonSchemaNode[] => node.oneOf ?? node.anyOf ?? [node];
