/** A policy client whose long work is an activity's progress: an adapter that is merged for minutes is no silence of whoever waits for it. */
import type { PolicyClient } from '../policy/client';

/** `onWork` is called whenever what makes a policy ready to serve can be seen to work. */
export const tellingOfMerges = (client: PolicyClient, onWork: () => void): PolicyClient => ({
  ...client,
  sample: (request) => client.sample({ ...request, onWork }),
});
