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
<p class="small quiet">What analyst, synthesizer and arms asked, and what the users and judges of rollouts said, as the endpoints count it; a reply
or a rollout that was kept is paid for once. These numbers have no lineage.</p>`;
};
