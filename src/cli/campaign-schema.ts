/** The schema of a campaign file: the campaign's fields with the options of each registered kind, and its JSON schema for editors. */
import { z } from 'zod';
import { armNameSchema, type Campaign, campaignFields, checkFields, outcomeMatrixFields } from '../domain/campaign';
import { type KindDescription, type KindFields, kindOf, type KindSpec, specSchemaOf } from '../domain/kinds';
import { presetNames } from '../domain/presets';
import { registry as allKinds, type Registry } from '../registry';
import { isReservedName } from './project';

/** Targets that a file may name; campaigns make the others. */
export const targetSchema = ({ environments }: Registry) =>
  specSchemaOf(environments.filter(({ internal }) => !internal));

/** Returns the schema of a campaign file. Parsing fills in the default options of every part's kind. */
export function campaignFileSchema(registry: Registry) {
  const described = <Schema extends z.ZodType>(field: keyof typeof campaignFields.shape, schema: Schema): Schema =>
    schema.describe(campaignFields.shape[field].description ?? '');
  const arms = z.array(specSchemaOf(registry.arms, { name: armNameSchema.optional() }));
  const withKinds = campaignFields.extend({
    name: described(
      'name',
      campaignFields.shape.name.refine(
        (name) => !isReservedName(name),
        'another one: the home keeps files of its own under that name',
      ),
    ),
    target: described('target', targetSchema(registry)),
    analyst: described('analyst', specSchemaOf(registry.analysts)),
    synthesizer: described('synthesizer', specSchemaOf(registry.synthesizers)),
    router: described('router', routerSchema(registry.routers)),
    arms: described('arms', arms.default([{ kind: 'grpo_target' }])),
  });
  return (withKinds as unknown as typeof campaignFields).superRefine(checkFields).transform((campaign): Campaign => {
    // A worker is asked for the plug-in that the kind is of.
    for (const [spec, { plugin }] of partsOf(campaign, registry)) if (plugin !== undefined) spec.plugin = plugin;
    const { analyst } = campaign;
    const model = kindOf(registry.analysts, analyst).languageModel?.(analyst);
    return { ...campaign, parts: { ...(model && { analystModel: model }) } };
  });
}

/** Returns the parts of a campaign with their kinds. */
export function partsOf(
  { target, analyst, synthesizer, router, arms }: Omit<Campaign, 'parts'>,
  registry: Registry,
): [KindSpec, KindDescription][] {
  return [
    [target, kindOf(registry.environments, target)],
    [analyst, kindOf(registry.analysts, analyst)],
    [synthesizer, kindOf(registry.synthesizers, synthesizer)],
    [router, kindOf(registry.routers, router)],
    ...arms.map((arm): [KindSpec, KindDescription] => [arm, kindOf(registry.arms, arm)]),
  ];
}

const DEFAULT_ROUTER = 'learned';

/** The router may be left out, or given without `kind`. */
function routerSchema(kinds: readonly KindFields[]) {
  const [first, ...others] = specSchemaOf(kinds, outcomeMatrixFields).options.map((option) =>
    option instanceof z.ZodObject && option.shape.kind.value === DEFAULT_ROUTER
      ? option.extend({
          kind: z.literal(DEFAULT_ROUTER).optional().default(DEFAULT_ROUTER).describe('The kind of this part.'),
        })
      : option,
  );
  return z.discriminatedUnion('kind', [first!, ...others]).prefault({ kind: DEFAULT_ROUTER });
}

export interface JsonSchemaNode {
  type?: string;
  const?: unknown;
  properties?: Record<string, JsonSchemaNode>;
  items?: JsonSchemaNode;
  prefixItems?: JsonSchemaNode[];
  description?: string;
  oneOf?: JsonSchemaNode[];
  anyOf?: JsonSchemaNode[];
  [keyword: string]: unknown;
}

/** Schema of a campaign file: the campaign's fields and `preset`. It takes the kinds of `registry` and no others. */
export function campaignJsonSchema(registry: Registry = allKinds): JsonSchemaNode {
  const { $schema, ...schema } = z.toJSONSchema(campaignFileSchema(registry), { io: 'input' }) as JsonSchemaNode;
  const preset = {
    type: 'string',
    enum: [...presetNames],
    default: 'paper',
    description: 'Defaults of all other fields.',
  };
  return { $schema, title: 'campaign file', ...schema, properties: { preset, ...schema.properties } };
}

/** Parts whose kinds may be those of plug-ins, as the file names them and as the registry does. */
const pluggable = {
  target: 'environments',
  analyst: 'analysts',
  synthesizer: 'synthesizers',
  router: 'routers',
} as const;

/** The same for files with any plug-ins: other kinds may have any options. */
export function openJsonSchema(): JsonSchemaNode {
  const schema = campaignJsonSchema();
  const parts = Object.entries(pluggable).map(([part, list]) => {
    const { description, default: fallback, ...closed } = schema.properties?.[part] ?? {};
    const known = allKinds[list].map(({ kind }) => kind);
    const kind = { type: 'string', not: { enum: known }, description: 'A kind of a plug-in.' };
    const open = { type: 'object', properties: { kind }, required: ['kind'] };
    return [part, { description, ...(fallback !== undefined && { default: fallback }), anyOf: [closed, open] }];
  });
  return { ...schema, properties: { ...schema.properties, ...Object.fromEntries(parts) } };
}
