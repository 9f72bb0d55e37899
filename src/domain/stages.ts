/** The stages of a campaign, in order; `--until` names one. */
export const stages = ['rollouts', 'selection', 'capabilities', 'router', 'evaluation'] as const;
export type Stage = (typeof stages)[number];
