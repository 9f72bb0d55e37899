/**
 * Where the arms are compared: the shop as it is shipped, and three ways in which it is harder for one of them. The campaigns of the other
 * studies are variations of the first.
 */
import type { ShopParameters } from '../src/environments/shop/shop';
import { baseWith, shipped, type Base } from './bases';
import type { CampaignSpec } from './campaigns';
import type { Context } from './study';

export interface Place {
  name: string;
  title: string;
  base: Base;
  parameters: Partial<ShopParameters>;
  /** Of the campaign file, beside the target. */
  fields: Record<string, unknown>;
}

/** Of the demonstrations that need a planted skill: what is never sampled can hardly be reinforced. */
const DEEP = 0.95;
/** Of all train tasks so many are held out, and each of the others is rolled out so often. */
const FEW = { tasks: 32, heldOut: 12, perTask: 10 };

export const atFirst: Place = {
  name: 'shipped',
  title: 'the shop as shipped',
  base: shipped,
  parameters: {},
  fields: {},
};

/** Base that lacks its skills nearly always; undefined where it may not be made. */
export async function deepBase({ settings, scale, signal }: Context): Promise<Base | undefined> {
  if (!scale.makesBases) return undefined;
  return baseWith({ skills: ['complete_all', 'refuse', 'tell'], fraction: DEEP, settings, signal });
}

export async function placesOf(context: Context): Promise<Place[]> {
  if (context.settings.small) return [atFirst];
  const deep = await deepBase(context);
  return [
    atFirst,
    { ...atFirst, name: 'requests', title: 'up to three requests a conversation', parameters: { requests: 3 } },
    {
      ...atFirst,
      ...{ name: 'few', title: `${FEW.tasks} train tasks`, parameters: { trainTasks: FEW.tasks } },
      fields: {
        rollouts: { tasks: FEW.tasks - FEW.heldOut, perTask: FEW.perTask },
        validation: { targetTasks: FEW.heldOut },
      },
    },
    ...(deep ? [{ ...atFirst, name: 'deep', title: `a base with lacks of ${DEEP}`, base: deep }] : []),
  ];
}

export const armsHere = ['grpo_target', 'joint', 'grpo_single'];

/** Campaigns of a place, one a seed. Without arms unless `fields` name some. */
export const specsOf = (o: {
  name: string;
  place: Place;
  seeds: readonly number[];
  fields?: Record<string, unknown>;
}): CampaignSpec[] =>
  o.seeds.map((seed) => ({
    ...{ name: o.name, seed, base: o.place.base },
    fields: {
      target: { kind: 'builtin', name: 'shop', ...o.place.parameters },
      arms: [],
      ...o.place.fields,
      ...o.fields,
    },
  }));

/** The campaigns with all arms: other studies begin with what these have made. */
export const armsSpecs = (place: Place, seeds: readonly number[]): CampaignSpec[] =>
  specsOf({ name: `arms-${place.name}`, place, seeds, fields: { arms: armsHere.map((kind) => ({ kind })) } });
