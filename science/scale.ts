/**
 * How large the studies are. Invariant: the full scale is the preset `demo` as it is shipped; the small one leaves out no step of the
 * harness but the making of base models.
 */
type Fields = Record<string, unknown>;

export interface Scale {
  /** Laid under every campaign's own fields. */
  fields: Fields;
  /** Groups a step and rollouts a group, equal in their product to the preset's. */
  groups: { groupsPerStep: number; groupSize: number }[];
  /** How often labels are dealt out anew. */
  permutations: number;
  /** Of scripted agents: the share of the tasks that need a skill on which it is lacking. */
  fractions: number[];
  /** At most so many skills planted at once in a scripted agent. */
  planted: number;
  /** Base models are made where they are missing. */
  makesBases: boolean;
}

/** Calibration that accepts whatever passes the self-test. */
export const openBands = {
  ...{ meanReward: [0, 1], successRate: [0, 1], minInformative: 0, minRewardStd: 0 },
  ...{ maxAllSuccess: 1, maxAllZero: 1, maxConstant: 1 },
};

const full: Scale = {
  fields: {},
  groups: [
    { groupsPerStep: 8, groupSize: 8 },
    { groupsPerStep: 2, groupSize: 32 },
  ],
  permutations: 1000,
  fractions: [0.25, 0.5, 0.75, 0.95],
  planted: 3,
  makesBases: true,
};

const small: Scale = {
  fields: {
    rollouts: { tasks: 100 },
    selection: { maxCandidates: 2 },
    calibration: { seeds: 8, rolloutsPerSeed: 8, maxRounds: 1, ...openBands },
    training: { groupsPerStep: 2, groupSize: 4, steps: 2, checkpointEvery: 1 },
    validation: { seeds: 6, targetTasks: 8 },
    router: { tasks: 16, folds: 2 },
    evaluation: { tasks: 16 },
  },
  groups: [{ groupsPerStep: 4, groupSize: 2 }],
  permutations: 50,
  fractions: [0.75],
  planted: 1,
  makesBases: false,
};

export const scaleOf = (o: { small: boolean }): Scale => (o.small ? small : full);

/** Lays `over` on `under`, field by field; lists and scalars are replaced whole. */
export function laidOver(under: Fields, over: Fields): Fields {
  const both = Object.entries(over).map(([key, value]) => {
    const below = under[key];
    return [key, isFields(below) && isFields(value) ? laidOver(below, value) : value] as const;
  });
  return { ...under, ...Object.fromEntries(both) };
}

const isFields = (value: unknown): value is Fields =>
  typeof value === 'object' && value !== null && !Array.isArray(value);
