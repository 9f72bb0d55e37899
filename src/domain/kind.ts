/**
 * The ways to do one part of the method: analysts, synthesizers, routers, arms, environments. A campaign file picks one by `kind` and
 * gives its options beside it. Invariant: what is made carries kind, version and options of its maker in its key, so that an artifact is
 * never taken for one that something else would have made.
 */
import { z } from 'zod';
import { OutsideFailure } from './failures';

/** What a campaign holds of a part: the kind that was picked and its options, checked when the campaign file was read. */
export const kindSpecSchema = z.looseObject({ kind: z.string().min(1) });
export type KindSpec = z.infer<typeof kindSpecSchema>;

/** Who made an artifact. Options that are files stand here as digests of their contents. */
export const identitySchema = z.object({ kind: z.string(), version: z.string(), options: z.unknown() });
export type Identity = z.infer<typeof identitySchema>;

export interface Kind<Made, Context = unknown> {
  readonly kind: string;
  /** Changes whenever something else would be made of the same inputs. */
  readonly version: string;
  /** Fields beside `kind` in the campaign file. */
  readonly options: z.ZodRawShape;
  /** Options that are paths: relative to the campaign file there, absolute in the campaign. */
  readonly paths: readonly string[];
  open(spec: KindSpec, context: Context): Made;
}

/** Describes one way: `open` is given the options as the schema parses them, and who it is for keys. */
export function defineKind<Shape extends z.ZodRawShape, Made, Context = unknown>(definition: {
  kind: string;
  version: string;
  options: Shape;
  paths?: readonly (keyof Shape & string)[];
  open(options: z.infer<z.ZodObject<Shape>>, identity: Identity, context: Context): Made;
}): Kind<Made, Context> {
  const { kind, version, options, paths = [], open } = definition;
  const schema = z.object(options);
  return {
    kind,
    version,
    options,
    paths,
    open(spec, context) {
      const parsed = schema.parse(spec);
      return open(parsed, { kind, version, options: parsed }, context);
    },
  };
}

/** The one of `kinds` that a spec names. Throws BadInput: this worker is of another version than the campaign file's reader. */
export function kindOf<K extends { kind: string }>(kinds: readonly K[], { kind }: KindSpec): K {
  const found = kinds.find((one) => one.kind === kind);
  if (found) return found;
  const known = kinds.map((one) => one.kind).join(', ');
  throw new OutsideFailure('BadInput', `kind "${kind}" is not known to this worker, which has ${known}; update it`);
}

/** Schema of a campaign file's field that picks one of `kinds`; `common` are fields that all of them have. */
export function specSchemaOf(kinds: readonly Pick<Kind<unknown>, 'kind' | 'options'>[], common: z.ZodRawShape = {}) {
  const [first, ...others] = kinds.map(({ kind, options }) =>
    z.strictObject({ kind: z.literal(kind), ...common, ...options }),
  );
  if (!first) throw new Error('there must be at least one kind');
  return z.discriminatedUnion('kind', [first, ...others]);
}
