/**
 * What a campaign file may say: the campaign's fields, with those of the kinds that there are for each part; what earlier versions
 * could say; and the JSON schema, for editors.
 */
import { z } from 'zod';
import {
  armNameSchema,
  campaignFields,
  checkFields,
  outcomeMatrixFields,
  type Campaign,
  type PartFacts,
} from '../domain/campaign';
import { kindOf, specSchemaOf, type KindFields } from '../domain/kinds';
import { presetNames } from '../domain/presets';
import { registry as allKinds, type Registry } from '../registry';
import { dotted, type Problem } from './input';

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
    .superRefine(({ policyServer, router }, context) => {
      if (policyServer.kind === 'vllm' && kindOf(registry.routers, router).trainsGate)
        context.addIssue({
          code: 'custom',
          path: ['router', 'kind'],
          message:
            'another kind with policyServer.kind vllm, which serves no gate; change it, or set policyServer.kind to embedded',
        });
    })
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
    ...(kindOf(registry.routers, campaign.router).trainsGate && { trainsGate: true }),
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

const UNPAID = 'measured without benefit';

/** Paths as in messages, `[]` for any entry of a list; with `value`, one value of the field alone. */
export const removed: readonly { path: string; value?: string; why: string }[] = [
  { path: 'arms[].kind', value: 'distill', why: `${UNPAID} (docs/decisions.md)` },
  { path: 'arms[].kind', value: 'trace_then_target', why: `${UNPAID} (docs/decisions.md)` },
  { path: 'arms[].kind', value: 'trace_then_joint', why: 'composites.share does the same (docs/decisions.md)' },
  { path: 'router.labels', why: 'it is a kind of its own, router.kind: label_tokens' },
  { path: 'router.moeGates', why: 'there is one gate, and it is a kind of its own, router.kind: moe_gate' },
  { path: 'router.learnedWeights', why: `${UNPAID} (docs/decisions.md)` },
  { path: 'calibration.easierShare', why: 'no environment was ever accepted with them (docs/decisions.md)' },
  { path: 'composites.environment', why: '`mixed` is what there is; `written` paid nothing (docs/decisions.md)' },
  { path: 'evaluation.plainRequests', why: 'no policy ever collapsed (docs/decisions.md)' },
];

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
      ...(gone ? [{ path: here, text: `${what}: removed in 0.2: ${gone.why}; ${fix}` }] : []),
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
