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
import { type KindFields, kindOf, specSchemaOf } from '../domain/kinds';
import { presetNames } from '../domain/presets';
import { registry as allKinds, type Registry } from '../registry';
import { dotted, type Problem } from './input';
import { removed } from './removed-fields';

/** What comes out is a complete campaign: the options of every part have the values that their kind gives them. */
export function campaignFileSchema(registry: Registry) {
  const described = <Schema extends z.ZodType>(field: keyof typeof campaignFields.shape, schema: Schema): Schema =>
    schema.describe(campaignFields.shape[field].description ?? '');
  const withKinds = campaignFields.extend({
    target: described('target', specSchemaOf(registry.environments.filter(({ internal }) => !internal))),
    analyst: described('analyst', partSchema(registry.analysts, 'rules')),
    synthesizer: described('synthesizer', partSchema(registry.synthesizers, 'generators')),
    router: described('router', partSchema(registry.routers, 'learned', outcomeMatrixFields)),
    arms: described(
      'arms',
      z.array(specSchemaOf(registry.arms, { name: armNameSchema.optional() })).default([{ kind: 'grpo_target' }]),
    ),
  });
  return (withKinds as unknown as typeof campaignFields)
    .superRefine(checkFields)
    .superRefine(({ trainer, arms }, context) => {
      const n = arms.findIndex((arm) => kindOf(registry.arms, arm).trainsOnConversations);
      if (trainer.kind === 'tinker' && n >= 0)
        context.addIssue({
          code: 'custom',
          path: ['arms', n, 'kind'],
          message: 'another kind with trainer.kind tinker, which trains on no conversations; change it',
        });
    })
    .transform((campaign): Campaign => ({ ...campaign, parts: factsOf(campaign, registry) }));
}

function factsOf(campaign: Omit<Campaign, 'parts'>, registry: Registry): PartFacts {
  const { analyst } = campaign;
  const model = kindOf(registry.analysts, analyst).languageModel?.(analyst);
  return {
    // Prompts of the analyst's own are no prompts of whoever else asks its model.
    ...(model && { analystModel: { ...model, prompts: undefined } }),
  };
}

/** A part that the file may leave out, or give without `kind`. */
function partSchema(kinds: readonly KindFields[], defaultKind: string, common: z.ZodRawShape = {}) {
  const [first, ...others] = specSchemaOf(kinds, common).options.map((option) =>
    option instanceof z.ZodObject && option.shape.kind.value === defaultKind
      ? option.extend({
          kind: z.literal(defaultKind).optional().default(defaultKind).describe('The kind of this part.'),
        })
      : option,
  );
  if (!first) throw new Error('there must be at least one kind');
  return z.discriminatedUnion('kind', [first, ...others]).prefault({ kind: defaultKind });
}

/** One problem per removed field, or value of a field, in what a file says. */
export function findRemoved(fields: unknown, path: PropertyKey[] = []): Problem[] {
  if (typeof fields !== 'object' || fields === null) return [];
  return Object.entries(fields).flatMap(([key, value]) => {
    const here = [...path, Array.isArray(fields) ? Number(key) : key];
    const name = dotted(here, () => '[]');
    const gone = removed.find((one) => one.path === name && (one.value ?? value) === value);
    const what = [dotted(here), ...(gone?.value === undefined ? [] : [gone.value])].join(' ');
    const fix = here[0] === 'arms' ? 'delete the arm' : 'delete the line';
    return [
      ...(gone ? [{ path: here, text: `${what}: removed in ${gone.version}: ${gone.why}; ${fix}` }] : []),
      ...findRemoved(value, here),
    ];
  });
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

/** Schema of a campaign file: the campaign's fields and `preset`. */
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

/** `campaign schema`. */
export const printSchema = (): string => JSON.stringify(campaignJsonSchema(), null, 2);
