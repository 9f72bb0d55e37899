/** What language models cost, by step, against the budget. */
import type { Report } from './model';
import { languageModelRows, spentText } from './language-model-cost';
import { markup, type Markup } from './markup';
import { table } from './sections';

export const languageModelSection = (cost: Report['cost']): Markup | undefined => {
  const spent = cost?.languageModel;
  if (spent === undefined) return undefined;
  return markup`<h3>Language models</h3>
<p class="small">${spentText(spent)}</p>
${table(languageModelRows(spent))}
<p class="small quiet">What analyst and synthesizer asked, as the endpoints count it; a reply that was kept is paid for once. Not measured on
rollouts: these numbers have no lineage.</p>`;
};
