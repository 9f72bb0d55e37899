/** The selection in the report: every candidate with its statistics, also those that were not selected. */
import { z } from 'zod';
import type { ArtifactStore } from '../../artifacts/store';
import { candidateSchema, selectionSchema, type Selection } from '../../domain/capability';
import type { ReportDraft } from '../../domain/report';
import type { ReportedCandidate } from '../../domain/reported-capability';
import type { CampaignRecord, SelectionResult } from '../../domain/results';
import { isSuccess } from '../../domain/rollout';
import { readRollouts } from '../../rollout/read';
import { readArtifact } from './evidence';
import { nothing, plainFigure, slug } from './figures';

export async function selectionOf(
  store: ArtifactStore,
  { selection: found, campaign, baseRollouts: { ref: labeled } }: CampaignRecord,
): Promise<Pick<ReportDraft, 'selection'>> {
  if (!found) return {};
  const [schema, what] = [selectionSchema, 'a selection'];
  const selection = await readArtifact({ store, ref: found.selection, schema, what });
  const { failed, passed } = await labeledRollouts(store, labeled);
  const outcome = (name: string, value: number) =>
    plainFigure({ id: `selection.${name}`, value, n: failed + passed, unit: 'count', from: [labeled] });
  return {
    selection: {
      rule: campaign.selection,
      failed: outcome('failed', failed),
      passed: outcome('passed', passed),
      candidates: await candidatesOf({ store, found, selection }),
      passes: allPasses(found),
      failedPasses: found.failedPasses,
      ...(selection.reason !== undefined && { reason: selection.reason }),
      from: [found.selection],
    },
  };
}

const allPasses = ({ labels, failedPasses }: SelectionResult): number => labels.length + failedPasses.length;

async function labeledRollouts(store: ArtifactStore, ref: SelectionResult['selection']) {
  const counts = { failed: 0, passed: 0 };
  for await (const rollout of readRollouts({ store, ref }))
    if (rollout.status === 'scored') counts[isSuccess(rollout) ? 'passed' : 'failed'] += 1;
  return counts;
}

/** In the order of the selection; where nothing was labeled, of the candidates. */
async function candidatesOf(o: {
  store: ArtifactStore;
  found: SelectionResult;
  selection: Selection;
}): Promise<ReportedCandidate[]> {
  const { store, found, selection } = o;
  const [schema, what] = [z.array(candidateSchema), 'a list of candidates'];
  const candidates = await readArtifact({ store, ref: found.candidates, schema, what });
  const passes = allPasses(found);
  if (found.labels.length === 0)
    return candidates.map(({ name, definition }) => ({
      name,
      definition,
      votes: 0,
      passes,
      coverage: nothing(`selection.${slug(name)}.coverage`),
      delta: nothing(`selection.${slug(name)}.delta`),
      selected: found.selected.some(({ candidate }) => candidate.name === name),
    }));
  return selection.capabilities.map((c) => {
    const figure = (name: 'coverage' | 'delta') =>
      plainFigure({
        id: `selection.${slug(c.name)}.${name}`,
        value: c[name].mean,
        std: c[name].std,
        n: c.passes,
        unit: name === 'coverage' ? 'fraction' : 'difference',
        from: [found.selection],
      });
    return {
      name: c.name,
      definition: candidates.find(({ name }) => name === c.name)?.definition ?? '',
      votes: c.votes,
      passes,
      coverage: figure('coverage'),
      delta: figure('delta'),
      selected: c.selected,
    };
  });
}
