/** People's labels against the passes, on the page. */
import { markup, type Markup } from '../../report/markup';
import { table } from '../../report/sections';
import type { Comparison } from './compare';
import {
  beginsText,
  comparisonHead,
  comparisonIntro,
  comparisonRow,
  confusionHead,
  confusionRows,
} from './comparison-text';

export const comparisonView = (comparison: Comparison): Markup => markup`<h2>Labels by people</h2>
<p>${comparisonIntro(comparison)}</p>
${comparison.begins && markup`<p>${beginsText(comparison.begins)}</p>`}
${comparison.rows.length > 0 && table({ head: comparisonHead, rows: comparison.rows.map(comparisonRow) })}
${comparison.rows.map(
  (row) =>
    markup`<details class="block"><summary>${row.capability}: label by label</summary>${table({ head: confusionHead, rows: confusionRows(row) })}</details>`,
)}`;
