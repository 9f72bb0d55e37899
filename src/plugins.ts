/** Loads plug-ins that a campaign file or a worker's flags name; code from Temporal or a store is never loaded. */
import { createRequire } from 'node:module';
import { join, resolve } from 'node:path';
import { z } from 'zod';
import { projectRoot } from './store/project-root';
import { type Environment, type Evaluation, evaluationSchema, type StopReason } from './domain/environment';
import { OutsideFailure, reasonOf } from './domain/failures';
import { firstIssue } from './domain/issues';
import type { Identity, Kind, KindSpec } from './domain/kinds';
import { getOrMake } from './domain/maps';
import type { EnvironmentKind } from './environments/kinds';
import type { Plugin } from './plugin';
import { registry as programs, type Registry } from './registry';

const kindsSchema = <K extends Kind<unknown, never>>() =>
  z.array(z.custom<K>(isKind, 'expected a kind that defineKind has made')).default([]);

function isKind(value: unknown): boolean {
  const { kind, read, open } = (value ?? {}) as Partial<Kind<unknown>>;
  return typeof kind === 'string' && typeof read === 'function' && typeof open === 'function';
}

const pluginSchema = z.object({
  name: z.string().regex(/^[a-z0-9@][\w@/.-]*$/i, 'expected the name of the plug-in, such as that of its package'),
  version: z.string().min(1),
  targets: kindsSchema<NonNullable<Plugin['targets']>[number]>(),
  analysts: kindsSchema<NonNullable<Plugin['analysts']>[number]>(),
  synthesizers: kindsSchema<NonNullable<Plugin['synthesizers']>[number]>(),
  routers: kindsSchema<NonNullable<Plugin['routers']>[number]>(),
});

/** Returns the absolute path of a plug-in: a path where the name begins with `.` or `/`, else a package that Node finds from `folder`. */
export function pluginPath(named: string, folder: string): string {
  if (/^[./]/.test(named)) return resolve(folder, named);
  try {
    return createRequire(join(resolve(folder), 'campaign.yaml')).resolve(named);
  } catch (error) {
    const fix = `install it in ${resolve(folder)}; a path begins with ./ or ../`;
    throw new Error(`plug-in ${named} is not found (${firstLine(error)}); ${fix}`, { cause: error });
  }
}

const firstLine = (error: unknown): string => reasonOf(error).split('\n')[0]!;

function loadPlugin(path: string) {
  let exported: unknown;
  try {
    exported = createRequire(__filename)(path);
  } catch (error) {
    const fix = `correct it; where it lacks trace-campaign, run \`npm install ${projectRoot}\` in its folder`;
    throw new Error(`plug-in ${path} cannot be loaded (${firstLine(error)}); ${fix}`, { cause: error });
  }
  const { data, error } = pluginSchema.safeParse(exported);
  if (data) return data;
  throw new Error(`plug-in ${path}: ${firstIssue(error, exported)}; export what docs/extending.md says`);
}

const registries = new Map<string, Registry>();

/** Returns the kinds of the program and of the plug-ins at these paths. Throws where a plug-in can't be loaded, or a kind is there twice. */
export const withPlugins = (paths: readonly string[]): Registry =>
  getOrMake(registries, paths.join('\n'), () => paths.reduce(extended, programs));

function extended(registry: Registry, path: string): Registry {
  const { name, version, targets, analysts, synthesizers, routers } = loadPlugin(path);
  const id = `${name}@${version}`;
  if (registry.plugins.some((other) => other.startsWith(`${name}@`)))
    throw new Error(`plug-in ${path} is a second plug-in named ${name}; name one of the two`);
  const added = <K extends { readonly kind: string }>(part: string, kinds: readonly K[], more: readonly K[]): K[] => {
    const taken = more.find(({ kind }) => kinds.some((one) => one.kind === kind));
    if (taken) throw new Error(`plug-in ${path}: ${part}: there is a kind "${taken.kind}" already; rename the kind`);
    return [...kinds, ...more];
  };
  return {
    ...registry,
    plugins: [...registry.plugins, id],
    environments: added('targets', registry.environments, targets.map(targetOf(id))),
    analysts: added('analysts', registry.analysts, analysts.map(partOf(id))),
    synthesizers: added('synthesizers', registry.synthesizers, synthesizers.map(partOf(id))),
    routers: added('routers', registry.routers, routers.map(partOf(id))),
  };
}

interface Made {
  readonly identity: Identity;
}

/** Adds the plug-in to the identity of a kind's implementation, and so to the keys of its results. */
const partOf =
  (plugin: string) =>
  <M extends Made, Context, K extends Kind<M | Promise<M>, Context>>(kind: K): K => {
    const marked = (made: M): M => Object.assign(made, { identity: { ...made.identity, plugin } });
    const open = (spec: KindSpec, context: Context) => {
      const made = kind.open(spec, context);
      return made instanceof Promise ? made.then(marked) : marked(made);
    };
    return { ...kind, plugin, open };
  };

function readEvaluation(kind: string, given: unknown): Evaluation {
  const { data, error } = evaluationSchema.safeParse(given);
  if (data) return data;
  const problem = `target ${kind}: evaluate: ${firstIssue(error, given)}`;
  throw new OutsideFailure('BadEnvironment', `${problem}; return what docs/environments.md says of evaluate`);
}

/** Adds the plug-in to the description of an environment, and so to the keys of its rollouts, and checks its rewards. */
const targetOf =
  (plugin: string) =>
  (kind: EnvironmentKind): EnvironmentKind => ({
    ...kind,
    plugin,
    async open(spec, context): Promise<Environment> {
      const environment = await kind.open(spec, context);
      return {
        ...(environment.appearance && { appearance: environment.appearance }),
        describe: async () => ({ ...(await environment.describe()), plugin }),
        tasks: (split) => environment.tasks(split),
        async reset(...given) {
          const episode = await environment.reset(...given);
          const evaluate = async (reason: StopReason) => readEvaluation(kind.kind, await episode.evaluate(reason));
          return {
            start: episode.start,
            step: (...said) => episode.step(...said),
            evaluate,
            close: () => episode.close(),
          };
        },
        close: () => environment.close(),
      };
    },
  });
