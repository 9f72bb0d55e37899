/**
 * The general classes of error that are seen by comparing what was done with what was needed, and the capability that each shows to be
 * lacking. Invariant: names and definitions hold for any domain; a name belongs to one class.
 */
import { z } from 'zod';

export const errorClassSchema = z.enum([
  /** Some of the needed actions were done, others left out. */
  'omitted_action',
  /** A write that the policy forbids: none was needed there. */
  'forbidden_action',
  /** The right tool on the wrong one of several similar records. */
  'wrong_candidate',
  /** Right tool, right record, a wrong computed value. */
  'wrong_value',
  /** Everything was done, but a fact that the user asked for was not told (or a false one was). */
  'untold_information',
  /** An identifier was made up instead of asked for. */
  'invented_identifier',
  /** Nothing was done although the policy permits it. */
  'refused_permitted_action',
]);
export type ErrorClass = z.infer<typeof errorClassSchema>;

export const capabilities: Record<ErrorClass, { name: string; definition: string }> = {
  omitted_action: {
    name: 'complete_all_requested_actions',
    definition:
      'The request holds several things to do. The agent carries out each of them, or says why one is not possible, before it ends the conversation.',
  },
  forbidden_action: {
    name: 'refuse_forbidden_actions',
    definition:
      'What is asked for is not permitted by the policy in the present state. The agent checks the conditions first, leaves the data unchanged and tells the user that it is not possible.',
  },
  wrong_candidate: {
    name: 'select_matching_record',
    definition:
      'Several similar records could be meant. The agent compares what the user said with each of them and acts on the one that matches in every respect.',
  },
  wrong_value: {
    name: 'compute_action_values',
    definition:
      'An action needs a value that is written nowhere and must be worked out. The agent applies the rules of the policy to the values it has seen and uses the result.',
  },
  untold_information: {
    name: 'tell_requested_information',
    definition:
      'The user wants to know something besides what is to be done. The agent tells this fact, as it was found or worked out, before it ends the conversation.',
  },
  invented_identifier: {
    name: 'ask_for_missing_identifiers',
    definition:
      'An identifier that the tools need is neither given nor to be looked up. The agent asks the user for it and waits for the answer, and never makes one up.',
  },
  refused_permitted_action: {
    name: 'perform_permitted_actions',
    definition:
      'The policy permits what is asked for. The agent checks the conditions and carries the request out, and does not refuse it.',
  },
};

const classes = new Map(errorClassSchema.options.map((errorClass) => [capabilities[errorClass].name, errorClass]));

/** The class that a capability is named after; undefined for a name of another analyst. */
export const errorClassOf = (capability: string): ErrorClass | undefined => classes.get(capability);
