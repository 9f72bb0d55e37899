/** Texts of models, modules and conversations on the page. Invariant: a long one is cut, and the whole is one click away. */
import { wholeNumber } from './format';
import { markup, type Markup } from './markup';

/** Characters that are shown at once. */
const SHORT = 300;

/** `missing` characters are not in the report. */
export const longText = (text: string, { missing = 0 }: { missing?: number | undefined } = {}): Markup => {
  const rest =
    missing > 0 && markup` <span class="quiet">… ${wholeNumber(missing)} more characters are in the artifact</span>`;
  if (text.length <= SHORT) return markup`<span class="text">${text}${rest}</span>`;
  // Never half of a character.
  const short = text.slice(0, SHORT).replace(/[\uD800-\uDBFF]$/, '');
  return markup`<details class="text"><summary><span class="cut">${short}… </span><span class="quiet">all ${wholeNumber(text.length + missing)} characters</span></summary>${text}${rest}</details>`;
};
