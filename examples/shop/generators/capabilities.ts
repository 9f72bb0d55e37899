/**
 * The capabilities that have a generator: the special case, which needs the capability, and its twin, which differs in
 * one thing only and does not; doing the special thing in a twin is wrong.
 */
export interface Plan {
  requests: number;
  /** The policy forbids the request: the solution makes no write and states the denial. */
  forbidden: boolean;
  /** Another record shares the descriptive word of the one that is meant, and could be acted on as well. */
  similar: boolean;
  /** The request carries the marker that changes a computed value. */
  marker: boolean;
  question: boolean;
  keyMissing: boolean;
}

const plain: Plan = {
  requests: 1,
  forbidden: false,
  similar: false,
  marker: false,
  question: false,
  keyMissing: false,
};

export interface Generator {
  special: Plan;
  twin: Plan;
  /** Tools that can be asked for. */
  requested: string[];
  rationale: string;
}

const ON_ITEM = ['cancel_item', 'rush_item', 'return_item'];

export const generatorsByName = {
  complete_all_requested_actions: {
    special: { ...plain, requests: 2 },
    twin: plain,
    requested: [...ON_ITEM, 'change_address'],
    rationale:
      'Half of the instances ask for two things in one message and are right only if both are done; the single requests among them make a ' +
      'second action without a request wrong. What is learned is to keep track of all that was asked for.',
  },
  refuse_forbidden_actions: {
    special: { ...plain, forbidden: true },
    twin: plain,
    requested: ON_ITEM,
    rationale:
      'The same request is forbidden or allowed by a field of the record that is looked up, so neither refusing all nor doing all pays. ' +
      'What is learned is to check the rule against the record before acting, and to tell the user.',
  },
  perform_permitted_actions: {
    special: plain,
    twin: { ...plain, forbidden: true },
    requested: ON_ITEM,
    rationale:
      'Half of the instances are permitted by the record that is looked up, half are not, with the same words. What is learned is to act where ' +
      'the rule permits it.',
  },
  select_matching_record: {
    special: { ...plain, similar: true },
    twin: plain,
    requested: ON_ITEM,
    rationale:
      'The account holds another record with the same word that could be acted on as well; all words of the request together decide. What ' +
      'is learned is to compare every word before choosing a record.',
  },
  compute_action_values: {
    special: { ...plain, marker: true },
    twin: plain,
    requested: ['return_item'],
    rationale:
      'A value is the plain one of the record, or a changed one where the request says so. What is learned is to compute the value that ' +
      'the rule gives for this request.',
  },
  tell_requested_information: {
    special: { ...plain, question: true },
    twin: plain,
    requested: ON_ITEM,
    rationale:
      'Half of the instances ask for an amount besides an action and are right only if the amount is told; where nobody asks, no amount is to be ' +
      'told. What is learned is to answer questions as well as to act.',
  },
  ask_for_missing_identifiers: {
    special: { ...plain, keyMissing: true },
    twin: plain,
    requested: ON_ITEM,
    rationale:
      'Half of the instances lack the identifier that the look-up needs; the user gives it when asked, and a made-up one spoils the instance. Where ' +
      'it is given, asking is wrong. What is learned is to ask for what is missing instead of making it up.',
  },
} satisfies Record<string, Generator>;
