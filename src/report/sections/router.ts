/** The section on the router: what it was chosen by, and what it chose. */
import { noSumsText } from '../adapters';
import { type Blocks, details, grid, heading, note, paragraph, table } from '../blocks';
import type { Report } from '../model';

const FORMS =
  'All forms on the same folds of the train split. constant: the best single option, chosen within the folds. Another form is kept only if its gain over constant is more than chance: one paired permutation test over the tasks.';

export function routerBlocks({ router, capabilities }: Report): Blocks {
  if (router === undefined) return [];
  const { crossValidation: cv, choices = [], errors, latency, constant } = router;
  const noSums = noSumsText(router, capabilities);
  const everything = constant === undefined ? '' : `, gives every conversation to ${constant}`;
  const forms = cv.forms?.map(({ form, successRate, kept }) => [`${form}${kept ? ', kept' : ''}`, successRate]);
  return details(
    heading('Router'),
    paragraph(
      `Kind: ${router.kind}${everything}. In cross-validation on the train split it ${router.helps ? 'helps' : 'does not help'}.`,
    ),
    noSums !== undefined && paragraph(`No adapters were added up: ${noSums}.`),
    grid(
      ['policy', 'cross-validated success'],
      [
        ...(forms ?? [['routed', cv.routed]]),
        [`best single: ${cv.bestSingle.option}`, cv.bestSingle.successRate],
        ['base', cv.base],
        ['union ceiling', cv.unionCeiling],
      ],
    ),
    forms && note(FORMS),
    heading('Choices on the test split', 3),
    table(choices, [
      ['option', ({ option }) => option],
      ['share of conversations', ({ share }) => share],
      ['success of these', ({ successRate }) => successRate],
      choices.some(({ probability }) => probability) && ['mean probability', ({ probability }) => probability],
    ]),
    latency && paragraph(['Choosing takes, median of a conversation', latency]),
    errors && paragraph(['Test rollouts that broke because the router could not choose:', errors]),
  );
}
