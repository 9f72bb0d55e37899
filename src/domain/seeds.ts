/** Seeds of a synthesized environment, by use: the ranges never meet. */
export const seedRanges = { calibration: 0, training: 10_000, heldOut: 1_000_000 } as const;
