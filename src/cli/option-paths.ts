/** Options of a part that are paths. Invariant: which ones, its kind says; options that are left out stay so. */
import type { Kind, KindSpec } from '../domain/kinds';

export function changePaths<Spec extends KindSpec>(
  spec: Spec,
  { paths }: Pick<Kind<unknown>, 'paths'>,
  change: (path: string) => string,
): Spec {
  const entries = paths.map((option) => [option, spec[option]] as const);
  const given = entries.filter((entry): entry is [string, string] => typeof entry[1] === 'string');
  return { ...spec, ...Object.fromEntries(given.map(([option, path]) => [option, change(path)])) };
}
