/** The analyst selects what was planted from recorded replies of a language model, which the real client reads. */
import { analyseRecorded } from '../../support/analyse-recorded';

/** The capabilities that mean the planted skills; the comments name the skills. */
const sets = [
  [
    'shop-base',
    [
      'answer_questions_alongside_actions', // tell
      'complete_every_requested_part', // complete_all
      'match_action_to_recorded_state', // refuse
    ],
  ],
  [
    'tau2-retail',
    [
      'attempt_request_before_handoff', // keep_working
      'complete_every_requested_part', // complete_all
      'confirm_details_before_irreversible_action', // confirm_first
      'match_options_to_stated_constraints', // match_constraints
    ],
  ],
] as const;

it.each(sets)('%s: selects what was planted and nothing else', async (set, planted) => {
  const { capabilities } = await analyseRecorded(set);
  const selected = capabilities.filter((one) => one.selected).map(({ name }) => name);
  expect(selected.sort()).toEqual(planted);
});
