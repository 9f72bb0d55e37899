/** Which instance a seed is, and what the target's tools do with records. Everything is read off the parameters. */
/** @typedef {import('../params').Params} Params */
/** @typedef {import('../params').Request} Request */
/** @typedef {import('../params').Values} Values */
/** @typedef {import('../capabilities').Plan} Plan */
/** @typedef {import('../world').Write} Write */
/** @typedef {import('trace-campaign/plugin').Vocabulary} Vocabulary */

/**
 * Every second instance is the twin of the one before.
 * @type {(seed: number) => 'special' | 'twin'}
 */
export const branchOf = (seed) => (seed % 2 === 0 ? 'special' : 'twin');

/** @type {(params: Params, seed: number) => Plan} */
export const planOf = ({ plans }, seed) => plans[branchOf(seed)];

/**
 * @template {{name: string}} T
 * @param {readonly T[]} things
 * @param {string} name
 */
const named = (things, name) => things.find((thing) => thing.name === name);

/** @param {Params} params @param {string} name */
export const toolOf = ({ tools }, name) => named(tools, name);

/** @type {(params: Params, tool: string) => Write} */
export const writeOf = ({ world }, tool) => /** @type {Write} */ (world.writes.find((write) => write.tool === tool));

/** @type {(params: Params, field: string) => Vocabulary} */
export const vocabularyOf = ({ world }, field) =>
  /** @type {{vocabulary: Vocabulary}} */ (named(world.lookup.fields, field)).vocabulary;

/** @type {(params: Params, record: Values) => string} */
export const nameOf = (params, record) => String(record[params.named]);

/** @type {(params: Params, request: Request) => string | undefined} */
export const denialOf = (params, { write }) => writeOf(params, write).precondition?.denial;

/**
 * What a write is called with; `marked`: the user's words change the computed value.
 * @type {(write: Write, on: {record: Values, said: Values, marked: boolean, key: string | number}) => Values}
 */
export const argumentsOf = (write, { record, said, marked, key }) =>
  Object.fromEntries(
    write.arguments.map((argument) => {
      const { name, from } = argument;
      if (from === 'key') return [name, key];
      if (from === 'said') return [name, /** @type {string | number} */ (said[name])];
      if (from === 'computed') return [name, Number(record[argument.field]) + (marked ? argument.offset : 0)];
      return [name, /** @type {string | number} */ (record[name])];
    }),
  );

/**
 * What the user hears when asking how much: the computed argument, if the write has one, else the record's field.
 * @type {(params: Params, request: Request, marked: boolean) => string | number}
 */
export function amountOf(params, { write, record }, marked) {
  const field = params.world.tell?.field ?? '';
  const amount = /** @type {Values} */ (record)[field];
  for (const argument of writeOf(params, write).arguments)
    if (argument.from === 'computed' && argument.field === field)
      return Number(amount) + (marked ? argument.offset : 0);
  return /** @type {string | number} */ (amount);
}
