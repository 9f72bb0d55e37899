/** The selection in the report: every candidate with its statistics, also those that were not selected. */
import type { ArtifactStore } from '../../artifacts/store';
import { decisionText } from '../../domain/approval';
import { selectionSchema, type Selection } from '../../domain/capability';
import type { ReportDraft } from '../../domain/report';
import type { ReportedCandidate } from '../../domain/reported-capability';
import type { CampaignRecord, SelectionResult } from '../../domain/results';
import { readArtifact } from './evidence';
import { nothing, plainFigure, slug } from './figures';
import { agreementFigures, quotedIn, readFound, shownOf, type Found } from './found';
import { readLabeled } from './quotes';

export async function selectionOf(
  store: ArtifactStore,
  { selection: found, campaign, baseRollouts: { ref: labeled } }: CampaignRecord,
): Promise<Pick<ReportDraft, 'selection'>> {
  if (!found) return {};
  const [schema, what] = [selectionSchema, 'a selection'];
  const selection = await readArtifact({ store, ref: found.selection, schema, what });
  const shown = await readFound({ store, found, selection });
  const quotes = await readLabeled({ store, ref: labeled, quoted: quotedIn(shown) });
  const { failed, passed } = quotes;
  const outcome = (name: string, value: number) =>
    plainFigure({ id: `selection.${name}`, value, n: failed + passed, unit: 'count', from: [labeled] });
  return {
    selection: {
      rule: campaign.selection,
      failed: outcome('failed', failed),
      passed: outcome('passed', passed),
      candidates: candidatesOf({ shown, found, selection }),
      passes: allPasses(found),
      failedPasses: found.failedPasses,
      ...(selection.reason !== undefined && { reason: selection.reason }),
      ...(found.noComposite !== undefined && { noComposite: found.noComposite }),
      ...(found.decision && { decision: decisionText(found.decision) }),
      ...shownOf({ ...shown, found, labeled: quotes }),
      from: [found.selection],
    },
  };
}

const allPasses = ({ labels, failedPasses }: SelectionResult): number => labels.length + failedPasses.length;

/** In the order of the selection; where nothing was labeled, of the candidates. */
function candidatesOf(o: { shown: Found; found: SelectionResult; selection: Selection }): ReportedCandidate[] {
  const { shown, found, selection } = o;
  const { candidates } = shown.discovery;
  const passes = allPasses(found);
  // As they were approved, where somebody was asked.
  const taken = new Map(found.selected.map(({ candidate }) => [candidate.name, candidate.definition]));
  if (found.labels.length === 0)
    return candidates.map(({ name, definition }) => ({
      name,
      definition: taken.get(name) ?? definition,
      votes: 0,
      passes,
      coverage: nothing(`selection.${slug(name)}.coverage`),
      delta: nothing(`selection.${slug(name)}.delta`),
      selected: taken.has(name),
    }));
  const agreements = agreementFigures(shown, found);
  return selection.capabilities.map((c) => {
    const agreement = agreements.get(c.name);
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
      definition: taken.get(c.name) ?? candidates.find(({ name }) => name === c.name)?.definition ?? '',
      votes: c.votes,
      passes,
      coverage: figure('coverage'),
      delta: figure('delta'),
      ...(agreement && { agreement }),
      selected: taken.has(c.name),
    };
  });
}
