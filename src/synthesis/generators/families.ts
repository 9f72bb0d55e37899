/**
 * Which instances a generated module draws from one account: a special one, which needs the capability, and its twin.
 */
import { OutsideFailure } from '../../domain/failures';
import { generatorsByName, type CapabilityName, type Generator, type Plan } from './capabilities';
import type { World } from './world';

/** Accounts of one make. */
export interface Family {
  share: number;
  plans: Record<string, Plan>;
  /** What the branch `both` is reported as: read by the module's fixed text, set by no generator. */
  both?: string;
  /** Tools of the first and the second thing that an account is drawn for; the plan's special part is the first one's. */
  requested: string[][];
}

export interface Member {
  branch: string;
  /** The account's second request comes first, or is the one that is asked. */
  turned: boolean;
}

/** The instances of an account: every second one is the twin of the one before. */
export const TWINS: Member[][] = [
  [
    { branch: 'special', turned: false },
    { branch: 'twin', turned: false },
  ],
];

/** The family of a capability, with these tools only. */
export function familyOf({ special, twin, requested }: Generator, world: World): Family {
  const tools = requested(world).map(({ tool }) => tool);
  const most = Math.max(special.requests, twin.requests);
  return { share: 1, plans: { special, twin }, requested: Array.from({ length: most }, () => tools) };
}

/** Throws `CannotSynthesize` if the capability has no generator. */
export function generatorNamed(name: string): Generator {
  if (Object.hasOwn(generatorsByName, name)) return generatorsByName[name as CapabilityName];
  throw new OutsideFailure(
    'CannotSynthesize',
    `there is no generator for "${name}", only for ${Object.keys(generatorsByName).join(', ')}`,
  );
}
