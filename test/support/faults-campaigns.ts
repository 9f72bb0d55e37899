/** The campaign files that are disturbed: the whole method, small. Any calibration passes, so that what is selected is what is trained. */

const openBands =
  'meanReward: [0, 1], successRate: [0, 1], maxAllSuccess: 1, maxAllZero: 1, minInformative: 0, minRewardStd: 0';

/** About 45 s on two quiet cores: one capability and grpo_target. `groupSize`: rollouts of a training step. */
const smallWith = (groupSize: number) => `rollouts: { tasks: 60, perTask: 4 }
selection: { maxCandidates: 1, passes: 4, votes: 1, rho: 0, delta: 0 }
calibration: { seeds: 6, rolloutsPerSeed: 8, ${openBands} }
training: { groupsPerStep: 1, groupSize: ${groupSize}, steps: 6, checkpointEvery: 2 }
validation: { seeds: 6, targetTasks: 8 }
router: { tasks: 12, folds: 3 }
evaluation: { tasks: 12 }
`;
export const campaignFiles = {
  small: `${smallWith(8)}workers: { heartbeatSeconds: 5, stallSeconds: 60 }\n`,
  /**
   * All that a language model is paid for, and as little else as there can be: no environment is right, so that it is written in three rounds
   * and nothing is trained. The models' fields are added to it.
   */
  paid: `rollouts: { tasks: 24, perTask: 1 }
selection: { maxCandidates: 1, passes: 3, votes: 1, rho: 0, delta: 0 }
calibration: { seeds: 2, rolloutsPerSeed: 2, maxRounds: 3, successRate: [0.999, 1], maxAllSuccess: 0 }
training: { groupsPerStep: 1, groupSize: 8, steps: 2, checkpointEvery: 2 }
validation: { seeds: 2, targetTasks: 4 }
arms: []
router: { tasks: 12, folds: 3 }
evaluation: { tasks: 4 }
workers: { heartbeatSeconds: 5, stallSeconds: 60 }
`,
  /** A search's budget is what is trained: here of 96 rollouts. The arm is added to it. */
  search: `${smallWith(16)}workers: { heartbeatSeconds: 5, stallSeconds: 60 }\n`,
} as const;

export type CampaignFile = keyof typeof campaignFiles;
