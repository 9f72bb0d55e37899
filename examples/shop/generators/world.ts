/** The shop as the generators see it: one look-up whose records the writes act on. */
import { type JsonSchema, type Vocabulary, vocabularyOf } from 'trace-campaign/plugin';
import type { Status } from '../target/shop';
import { FIELDS, TEXTS } from '../target/tasks';

type Argument = { name: string } & (
  | { from: 'record' }
  | { from: 'key' }
  | { from: 'said'; vocabulary: Vocabulary }
  /** The record's `field`, plus `offset` when the request carries `marker`. */
  | { from: 'computed'; field: string; marker: string; offset: number }
);

export interface Write {
  tool: string;
  /** The request in the user's words, with arguments in braces: the tool's description. */
  request: string;
  arguments: Argument[];
  /** Acts on one record (others change the account). */
  onRecord: boolean;
  precondition?: { field: string; value: string; denial: string };
}

export interface World {
  lookup: { tool: string; key: string; keyVocabulary: Vocabulary; fields: { name: string; vocabulary: Vocabulary }[] };
  writes: Write[];
  tell?: { question: string; field: string };
  ask?: { question: string; answer: string };
}

const vocabulary = (schema: JsonSchema): Vocabulary => vocabularyOf(schema)!;

const onRecord = (verb: string, value: Status, ...more: Argument[]): Write => ({
  tool: `${verb}_item`,
  request: `${verb} the {item}`,
  arguments: [{ name: 'item', from: 'record' }, { name: 'id', from: 'record' }, ...more],
  onRecord: true,
  precondition: { field: 'status', value, denial: TEXTS.denial },
});

/** `exchange_item` is left out: it takes an item that no account holds. The order is in the bytes of modules. */
export const world: World = {
  lookup: {
    tool: 'get_account',
    key: 'user',
    keyVocabulary: vocabulary(FIELDS.user),
    fields: (['item', 'id', 'status', 'price'] as const).map((name) => ({
      name,
      vocabulary: vocabulary(FIELDS[name]),
    })),
  },
  writes: [
    onRecord('cancel', 'pending'),
    onRecord('rush', 'pending'),
    onRecord('return', 'delivered', {
      name: 'refund',
      from: 'computed',
      field: 'price',
      marker: TEXTS.opened,
      offset: -5,
    }),
    {
      tool: 'change_address',
      request: 'change the address to {city}',
      arguments: [
        { name: 'user', from: 'key' },
        { name: 'city', from: 'said', vocabulary: vocabulary(FIELDS.city) },
      ],
      onRecord: false,
    },
  ],
  tell: { question: TEXTS.howMuch('{item}'), field: 'price' },
  ask: { question: TEXTS.askAccount, answer: TEXTS.account('%') },
};
