/** The selection in the report: every candidate with its statistics, also those that were not selected. */
import type { ArtifactStore } from '../../artifacts/store';
import type { Candidate, Selection } from '../../domain/capability';
import type { CampaignRecord } from '../../domain/results';
import type { ReportDraft, ReportedCandidate } from '../../domain/report';
import { plainFigure, slug } from './figures';

export async function selectionOf(
  store: ArtifactStore,
  { selection: found, campaign, baseRollouts }: CampaignRecord,
): Promise<Pick<ReportDraft, 'selection'>> {
  if (!found) return {};
  const json = async <T>(ref: (typeof found)['selection']) => JSON.parse((await store.read(ref)).toString('utf8')) as T;
  const selection = await json<Selection>(found.selection);
  const candidates = await json<Candidate[]>(found.candidates);
  const passed = Math.round(baseRollouts.successRate * baseRollouts.scored);
  return {
    selection: {
      rule: campaign.selection,
      passed,
      failed: baseRollouts.scored - passed,
      candidates: selection.capabilities.map((c): ReportedCandidate => {
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
          definition: candidates.find((candidate) => candidate.name === c.name)?.definition ?? '',
          votes: c.votes,
          passes: c.passes,
          coverage: figure('coverage'),
          delta: figure('delta'),
          selected: c.selected,
        };
      }),
      ...(selection.reason !== undefined && { reason: selection.reason }),
      from: [found.selection],
    },
  };
}
