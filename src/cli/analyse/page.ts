/** The page of an analysis, in one file. */
import { languageModelCost } from '../../report/build/cost';
import { pageHtml } from '../../report/html';
import type { Analysis } from './result';

export const analysisHtml = (analysis: Analysis): string =>
  pageHtml({
    kind: 'analysis',
    title: `${analysis.name}: analysis`,
    analysis,
    spent: languageModelCost(analysis.spent, analysis.budget),
  });
