/** Implementations of one part of the method. A campaign file selects one by `kind`. Kind, version and options are in the keys of its results. */
import { z } from 'zod';
import { type ArtifactRef, artifactRefSchema } from './artifacts';
import { badInput, OutsideFailure } from './failures';
import { placeSchema } from './places';

/** Fields of campaign files: a share, and a count. A larger count is a mistake. */
export const fraction = z.number().min(0).max(1);
export const MOST = 1_000_000;
export const count = z.number().int().positive().max(MOST);

/** The `kind` of an implementation and its options. The options were checked when the campaign file was read. */
export const kindSpecSchema = z.looseObject({
  kind: z.string().min(1),
  /** NAME@VERSION of the plug-in that has the kind, found when the campaign file is read. */
  plugin: z.string().optional(),
});
export type KindSpec = z.infer<typeof kindSpecSchema>;

/** Names the maker of an artifact. Options that are files are digests of their contents. `plugin` is NAME@VERSION of the plug-in that has the kind. */
export const identitySchema = z.object({
  kind: z.string(),
  version: z.string(),
  options: z.unknown(),
  plugin: z.string().optional(),
});
export type Identity = z.infer<typeof identitySchema>;

/** Selects files: those of the named folder with this ending, or texts by paths that begin with the base name of the option's path. */
export type Given = string | ((path: string) => Promise<Record<string, string>>);

/** The options of a kind, and its part in keys. */
export interface KindDescription<Options = unknown> {
  readonly kind: string;
  /** NAME@VERSION of the plug-in that has it; absent of a kind of the program. */
  readonly plugin?: string;
  /** Changes whenever something else would be made of the same inputs. */
  readonly version: string;
  readonly options: z.ZodRawShape;
  /** Options that are paths, relative to the campaign file; `a.b` is field b of option a. The files must be on every machine that opens the part, unless they are `given`. */
  readonly paths: readonly string[];
  /** The `paths` whose files go into the store when a campaign starts. */
  readonly given: Readonly<Record<string, Given>>;
  read(spec: KindSpec): Options;
}

export interface Kind<Made, Context = unknown, Options = unknown> extends KindDescription<Options> {
  open(spec: KindSpec, context: Context): Made;
}

type OptionPath<Shape> = (keyof Shape & string) | `${keyof Shape & string}.${string}`;

interface Definition<Shape extends z.ZodRawShape> {
  kind: string;
  version: string;
  options: Shape;
  paths?: readonly OptionPath<Shape>[];
  given?: Partial<Record<OptionPath<Shape>, Given>>;
}

/** Describes a kind that something else opens. */
export function describeKind<Shape extends z.ZodRawShape>(
  definition: Definition<Shape>,
): KindDescription<z.infer<z.ZodObject<Shape>>> {
  const { kind, version, options } = definition;
  const given = { ...definition.given } as Record<string, Given>;
  const paths = [...(definition.paths ?? []), ...Object.keys(given)];
  // A campaign on its way to workers holds places here. Activities get paths instead; workflows see the places.
  const places = paths.map((path) => {
    const [option = '', field] = path.split('.');
    const place = field === undefined ? placeSchema : z.strictObject({ [field]: placeSchema });
    return [option, z.union([options[option] as z.ZodType, place])];
  });
  const schema = z.object({ ...options, ...(Object.fromEntries(places) as Shape) });
  return { kind, version, options, paths, given, read: (spec) => schema.parse(spec) };
}

/** Defines a kind: `open` gets the parsed options, and the identity for keys. */
export function defineKind<Shape extends z.ZodRawShape, Made, Context = unknown>(
  definition: Definition<Shape> & {
    open(options: z.infer<z.ZodObject<Shape>>, identity: Identity, context: Context): Made;
  },
): Kind<Made, Context, z.infer<z.ZodObject<Shape>>> {
  const described = describeKind(definition);
  const { kind, version, read } = described;
  return {
    ...described,
    open(spec, context) {
      const options = read(spec);
      return definition.open(options, { kind, version, options }, context);
    },
  };
}

/** Returns the kind that a spec names. Throws PluginMissing, or BadInput where this worker is of another version than the campaign file's reader. */
export function kindOf<K extends { kind: string; plugin?: string }>(
  kinds: readonly K[],
  { kind, plugin }: Pick<KindSpec, 'kind' | 'plugin'>,
): K {
  const found = kinds.find((one) => one.kind === kind);
  if (found && (plugin === undefined || plugin === found.plugin)) return found;
  if (plugin !== undefined) {
    const has = found?.plugin === undefined ? 'has not loaded it' : `has loaded ${found.plugin}`;
    const fix = `start it with --plugin and the package or path of ${plugin}`;
    throw new OutsideFailure(
      'PluginMissing',
      `kind "${kind}" is of plug-in ${plugin}, and this process ${has}; ${fix}`,
    );
  }
  const known = kinds.map((one) => one.kind).join(', ');
  throw badInput(`kind "${kind}" is not known to this worker, which has ${known}; update it`);
}

export type KindFields = Pick<KindDescription, 'kind' | 'options'>;

/** Schema of a campaign file's field that picks one of `kinds`; `common` are fields that all of them have. */
export function specSchemaOf(kinds: readonly KindFields[], common: z.ZodRawShape = {}) {
  const [first, ...others] = kinds.map(({ kind, options }) =>
    z.strictObject({ kind: z.literal(kind).describe('The kind of this part.'), ...common, ...options }),
  );
  if (!first) throw new Error('there must be at least one kind');
  return z.discriminatedUnion('kind', [first, ...others]);
}

export type EnvironmentSpec = KindSpec;

/** The synthesizer that trains on the target's own tasks and writes no module. */
export const TARGET_TASKS = 'target_tasks';

export const SANDBOX = 'sandbox';
export const MIXTURE = 'mixture';

export const sandboxSpec = (module: ArtifactRef): EnvironmentSpec => ({ kind: SANDBOX, module });

/** Task `<n>/seed-<k>` is seed k of the module at n. */
export const mixtureSpec = (modules: readonly ArtifactRef[]): EnvironmentSpec => ({ kind: MIXTURE, modules });

export function modulesOf({ kind, module, modules }: EnvironmentSpec): ArtifactRef[] {
  if (kind === SANDBOX) return [artifactRefSchema.parse(module)];
  return kind === MIXTURE ? z.array(artifactRefSchema).parse(modules) : [];
}
