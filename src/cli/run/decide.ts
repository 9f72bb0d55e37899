/** What to do with a campaign's name: Temporal may know it already. */
import type { Stage } from '../../domain/campaign';
import { taskQueues } from '../../domain/work';
import { UserError } from '../errors';
import { ofAnotherHome, type CampaignState, type Digests } from '../temporal';

export type Decision = 'start' | 'attach' | 'show';

/**
 * A running campaign is attached to; a finished one is shown; one that failed, was ended, stopped after another stage or may now spend more
 * starts again, and finds its artifacts. All that only under the same configuration, and from the home that it is of.
 * @throws UserError if the name belongs to another configuration or another home.
 */
export function decide({
  name,
  store,
  state,
  configDigest,
  terms,
  until,
}: Digests & {
  name: string;
  store: string;
  state: CampaignState | undefined;
  until?: Stage | undefined;
}): Decision {
  if (!state) return 'start';
  if (state.taskQueue !== taskQueues.control(store)) throw ofAnotherHome(name, state);
  if (state.configDigest !== configDigest)
    throw new UserError(
      `campaign ${name} ${state.status === 'RUNNING' ? 'is running' : 'was run'} with another configuration; give this one its own name with --name, for example --name ${name}-2`,
    );
  if (state.status === 'RUNNING') return 'attach';
  return state.status === 'COMPLETED' && state.until === until && state.terms === terms ? 'show' : 'start';
}
