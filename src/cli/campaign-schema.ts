/** The schema of a campaign file: the campaign's fields with the options of each registered kind, and its JSON schema for editors. */
import { z } from 'zod';
import {
  armNameSchema,
  type Campaign,
  campaignFields,
  checkFields,
  outcomeMatrixFields,
  type PartFacts,
} from '../domain/campaign';
import { type KindFields, kindOf, type KindSpec, specSchemaOf } from '../domain/kinds';
import { presetNames } from '../domain/presets';
import { registry as allKinds, type Registry } from '../registry';
import { dotted, type FieldProblem } from './input';
import { removed, type RemovedField } from './removed-fields';

/** What comes out is a complete campaign: the options of every part have the values that their kind gives them. */
export function campaignFileSchema(registry: Registry) {
  const described = <Schema extends z.ZodType>(field: keyof typeof campaignFields.shape, schema: Schema): Schema =>
    schema.describe(campaignFields.shape[field].description ?? '');
  const withKinds = campaignFields.extend({
    target: described('target', specSchemaOf(registry.environments.filter(({ internal }) => !internal))),
    analyst: described('analyst', specSchemaOf(registry.analysts)),
    synthesizer: described('synthesizer', specSchemaOf(registry.synthesizers)),
    router: described('router', routerSchema(registry.routers)),
    arms: described(
      'arms',
      z.array(specSchemaOf(registry.arms, { name: armNameSchema.optional() })).default([{ kind: 'grpo_target' }]),
    ),
  });
  return (withKinds as unknown as typeof campaignFields).superRefine(checkFields).transform((campaign): Campaign => ({
    ...withPluginNames(campaign, registry),
    parts: factsOf(campaign, registry),
  }));
}

/** Names the plug-in beside each kind that is of one: a worker is asked for the same. */
function withPluginNames<Fields extends Omit<Campaign, 'parts'>>(campaign: Fields, registry: Registry): Fields {
  const named = <Spec extends KindSpec>(kinds: readonly { kind: string; plugin?: string }[], spec: Spec): Spec => {
    const { plugin } = kindOf(kinds, spec);
    return plugin === undefined ? spec : { ...spec, plugin };
  };
  return {
    ...campaign,
    target: named(registry.environments, campaign.target),
    analyst: named(registry.analysts, campaign.analyst),
    synthesizer: named(registry.synthesizers, campaign.synthesizer),
    router: named(registry.routers, campaign.router),
  };
}

function factsOf(campaign: Omit<Campaign, 'parts'>, registry: Registry): PartFacts {
  const { analyst } = campaign;
  const model = kindOf(registry.analysts, analyst).languageModel?.(analyst);
  return {
    // Prompts of the analyst's own are no prompts of whoever else asks its model.
    ...(model && { analystModel: { ...model, prompts: undefined } }),
  };
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
  if (!first) throw new Error('there must be at least one kind');
  return z.discriminatedUnion('kind', [first, ...others]).prefault({ kind: DEFAULT_ROUTER });
}

/** One problem per removed field, or value of a field, in what a file says. */
export function findRemoved(fields: unknown, path: PropertyKey[] = []): FieldProblem[] {
  if (typeof fields !== 'object' || fields === null) return [];
  return Object.entries(fields).flatMap(([key, value]) => {
    const here = [...path, Array.isArray(fields) ? Number(key) : key];
    const name = dotted(here, () => '[]');
    const gone = removed.find((one) => one.path === name && (one.value ?? value) === value);
    return [...(gone ? [removedProblem(gone, here)] : []), ...findRemoved(value, here)];
  });
}

function removedProblem({ value, version, why }: RemovedField, path: PropertyKey[]): FieldProblem {
  const field = dotted(path);
  const reason = `was removed in ${version}`;
  if (value === undefined) return { code: 'removed_field', path, field, reason, fix: `${why}; delete the line` };
  return { code: 'removed_field', path, field, value, reason: `${value} ${reason}`, fix: why };
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

/** Parts whose kinds may be those of plug-ins, as the file names them and as the registry does. */
export const pluggable = {
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
