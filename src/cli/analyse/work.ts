/**
 * Discovery, passes side by side, selection, without workflows. Invariants: a pass that can't be used is left out with its reason and never filled in; what stops one pass for a reason that
 * all share stops all of them.
 */
import { setMaxListeners } from 'node:events';
import { candidatesKey, checkedPass, labelsKey, type Analyst } from '../../analyst/analyst';
import type { ArtifactStore } from '../../artifacts/store';
import type { ArtifactRef } from '../../domain/artifacts';
import { requireDifference } from '../../domain/transcript';
import type { SelectionRule } from '../../domain/campaign';
import {
  discoverySchema,
  labelPassSchema,
  type Discovery,
  type LabelPass,
  type Selection,
} from '../../domain/capability';
import { isFailure, OF_A_PASS, OutsideFailure, reasonOf } from '../../domain/failures';
import { selectCapabilities } from '../../domain/selection';
import type { Ledger } from '../../language-model/types';
import type { Loaded } from './conversations';
import { asked, kept, keepRollouts, SEED } from './kept';
import { patiently } from './patience';
import type { Watch } from './watch';

export interface WorkInput {
  loaded: Pick<Loaded, 'rollouts' | 'description'>;
  analyst: Analyst;
  rule: SelectionRule;
  store: ArtifactStore;
  ledger: Ledger;
  watch: Watch;
  signal: AbortSignal;
}

export interface Found {
  discovery: Discovery;
  passes: LabelPass[];
  failedPasses: { pass: number; reason: string }[];
  selection: Selection;
}

export async function findCapabilities(input: WorkInput): Promise<Found> {
  const rollouts = await keepRollouts(input);
  const { ref, value: discovery } = await discover(input, rollouts);
  const ended = discovery.candidates.length === 0 ? [] : await label(input, { rollouts, ref, discovery });
  const passes = ended.flatMap((one) => ('made' in one ? [one.made] : []));
  const failedPasses = ended.flatMap((one) => ('reason' in one ? [one] : []));
  if (passes.length === 0 && failedPasses[0])
    throw new OutsideFailure(
      'AnswerInvalid',
      `all ${failedPasses.length} labeling passes failed, the first: ${failedPasses[0].reason}`,
    );
  const selection = requireDifference(selectCapabilities({ passes, rule: input.rule }), input.loaded.rollouts);
  return { discovery, passes, failedPasses, selection };
}

async function discover({ analyst, rule, store, loaded, ledger, watch, signal }: WorkInput, rollouts: ArtifactRef) {
  const { description } = loaded;
  const key = candidatesKey({ ...asked({ analyst, loaded }, rollouts), rule });
  return kept({ store, key, inputs: [rollouts], schema: discoverySchema }, () =>
    patiently(
      () =>
        analyst.discover({
          ...{ rollouts: loaded.rollouts, description, rule, seed: SEED, ledger, signal },
          quotable: new Set(loaded.rollouts.map((rollout) => rollout.key)),
          progress: (done, total) => watch.discovering(done, total),
        }),
      { signal, answered: watch.answered, onWait: watch.waits },
    ),
  );
}

type Ended = { made: LabelPass } | { pass: number; reason: string };

async function label(
  input: WorkInput,
  found: { rollouts: ArtifactRef; ref: ArtifactRef; discovery: Discovery },
): Promise<Ended[]> {
  const stop = new AbortController();
  const signal = AbortSignal.any([input.signal, stop.signal]);
  // Each request listens, and there are many.
  setMaxListeners(0, signal);
  const ended = await Promise.allSettled(
    Array.from({ length: input.rule.passes }, async (_, pass): Promise<Ended> => {
      try {
        const made = await labelOnce({ ...input, signal }, { ...found, pass });
        input.watch.passEnded(pass);
        return { made };
      } catch (error) {
        if (!isFailure(error, ...OF_A_PASS)) {
          stop.abort(error);
          throw error;
        }
        const reason = reasonOf(error);
        input.watch.passEnded(pass, reason);
        return { pass, reason };
      }
    }),
  );
  if (stop.signal.aborted) throw stop.signal.reason;
  return ended.flatMap((one) => (one.status === 'fulfilled' ? [one.value] : []));
}

async function labelOnce(
  { analyst, store, loaded, ledger, watch, signal }: WorkInput,
  { rollouts, ref, discovery, pass }: { rollouts: ArtifactRef; ref: ArtifactRef; discovery: Discovery; pass: number },
): Promise<LabelPass> {
  const { description } = loaded;
  const { candidates } = discovery;
  const key = labelsKey({ ...asked({ analyst, loaded }, rollouts), candidates: ref, pass });
  const { value } = await kept({ store, key, inputs: [rollouts, ref], schema: labelPassSchema }, () =>
    patiently(
      async () => {
        const made = await analyst.label({
          ...{ rollouts: loaded.rollouts, description, candidates, pass, seed: SEED, ledger, signal },
          progress: (done, total) => watch.labeling(pass, done, total),
        });
        return checkedPass(made, candidates);
      },
      { signal, answered: watch.answered, onWait: watch.waits },
    ),
  );
  return value;
}
