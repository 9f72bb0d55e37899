/** Approval of an environment that is within the bands. Invariant: an edited text is a version like any other: it is tested and calibrated. */
import type { ArtifactRef } from '../domain/artifacts';
import type { Campaign } from '../domain/campaign';
import type { Candidate } from '../domain/capability';
import type { SynthesisRound } from '../domain/calibration';
import type { Subject } from './approval';
import type { ChildStatus } from './child-status';

/** What becomes of an accepted version: it is taken; another text is tried in its place, an edited one or the synthesizer's next; or none is. */
export type Verdict = 'take' | 'give up' | { edited?: ArtifactRef | undefined };

/** Asks about the last of the rounds, and puts what was decided there. */
export async function environmentVerdict(o: {
  campaign: Campaign;
  candidate: Candidate;
  rounds: readonly SynthesisRound[];
  status: ChildStatus;
}): Promise<Verdict> {
  const { campaign, candidate, rounds, status } = o;
  const last = rounds.at(-1);
  if (!last || !campaign.approval.environments) return 'take';
  const { round, module } = last;
  status.set('approval', `round ${round} of ${campaign.calibration.maxRounds}`, round);
  const waiting = { what: 'environment' as const, of: module.sha256, names: [candidate.name], round };
  const decision = await status.approvals.ask({
    campaign,
    gate: status.gate,
    subject: { asked: { waiting, environment: { candidate, rounds: [...rounds] } }, refuse: refusal(module) },
  });
  last.decision = decision;
  // That nobody answered tells the synthesizer nothing.
  if (decision.kind === 'reject') return decision.by === 'timeout' ? 'give up' : {};
  return decision.module ? { edited: decision.module } : 'take';
}

/** What a rejection says to the report. */
export function rejectionText({ decision }: SynthesisRound): string | undefined {
  if (decision?.kind !== 'reject') return undefined;
  const { by, reason } = decision;
  return by === 'person' ? `a person read this version and rejected it: ${reason}` : reason;
}

const refusal =
  ({ sha256 }: ArtifactRef): Subject['refuse'] =>
  (answer) => {
    if ('reject' in answer) return answer.reject.names && 'names: an environment waits for approval, no capabilities';
    const { capabilities, module } = answer.approve;
    if (capabilities) return 'capabilities: an environment waits for approval, no capabilities';
    return module?.sha256 === sha256
      ? 'module: it is the text that waits for approval; approve it without an edit'
      : undefined;
  };
