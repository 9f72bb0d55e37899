/** Instances. Invariant: an instance is a function of the parameters and the seed; special ones and twins differ in one thing only. */
import { firstMessage } from './first-message.js';
import { amountOf, argumentsOf, nameOf, planOf, toolOf, vocabularyOf, writeOf } from './records.js';
import { draw, drawParts, pick, randomOf, shuffle, valueOf } from './random.js';
import { fits } from './validation.js';

/** @typedef {import('../params').Params} Params */
/** @typedef {import('../capabilities').Plan} Plan */
/** @typedef {import('../instance').Instance} Instance */
/** @typedef {import('../instance').Request} Request */
/** @typedef {import('../instance').Values} Values */
/** @typedef {import('../world').Write} Write */
/** @typedef {import('./random.js').Random} Random */

/**
 * The low-discrepancy sequence of the golden ratio: any run of seeds has about the same share of twins.
 * @type {(params: Params, seed: number) => boolean}
 */
export const isTwin = ({ twins }, seed) => (seed * 0.6180339887498949) % 1 < twins;

const TRIES = 50;

/**
 * A record whose words are in no other record, apart from `word`; identifiers are unique.
 * @type {(params: Params, random: Random, used: Set<string>, word?: string) => Values}
 */
export function drawRecord(params, random, used, word) {
  const { lookup, writes } = params.world;
  const identifiers = new Set(
    writes.flatMap((write) => write.arguments.flatMap(({ name, from }) => (from === 'record' ? [name] : []))),
  );
  /** @type {Values} */
  const record = {};
  for (const { name, vocabulary } of lookup.fields) {
    const identifies = name === params.named || identifiers.has(name);
    const drawOnce = () =>
      drawParts(random, vocabulary, identifies ? used : new Set(), name === params.named ? word : undefined);
    let drawn = drawOnce();
    for (let tries = 1; tries < TRIES && identifies && used.has(drawn.join('')); tries += 1) drawn = drawOnce();
    record[name] = valueOf(vocabulary, drawn.join(''));
    if (!identifies) continue;
    for (const part of drawn) if (/^[a-z]{2,}$/i.test(part)) used.add(part);
    used.add(drawn.join(''));
  }
  return record;
}

/** @type {(params: Params, random: Random, on: {record: Values, write: Write, allowed: boolean}) => void} */
function setCondition(params, random, { record, write, allowed }) {
  if (!write.precondition) return;
  const { field, value } = write.precondition;
  const [options = []] = vocabularyOf(params, field).parts;
  record[field] = allowed
    ? value
    : pick(
        random,
        options.filter((option) => option !== value),
      );
}

/**
 * One thing to ask for, and the records that it is about.
 * @param {Params} params
 * @param {Random} random
 * @param {{plan: Plan, used: Set<string>, before: readonly Request[]}} so
 * @returns {Request}
 */
function drawRequest(params, random, { plan, used, before }) {
  const free = params.requested
    .map((tool) => writeOf(params, tool))
    .filter(({ onRecord, tool }) => onRecord || !before.some((request) => request.write === tool));
  const write = pick(random, free);
  const said = Object.fromEntries(
    write.arguments.flatMap((argument) =>
      argument.from === 'said' ? [[argument.name, draw(random, argument.vocabulary)]] : [],
    ),
  );
  if (!write.onRecord) return { write: write.tool, said, record: null, lookalike: null };
  const record = drawRecord(params, random, used);
  setCondition(params, random, { record, write, allowed: !plan.forbidden });
  return { write: write.tool, said, record, lookalike: null };
}

/**
 * Records that share the last word of the request's record and could be acted on as well.
 * @param {Params} params
 * @param {Random} random
 * @param {{request: Request, used: Set<string>}} of
 */
function drawLookalikes(params, random, { request: { write, record }, used }) {
  if (!record) return [];
  const { parts, words } = vocabularyOf(params, params.named);
  const word = parts[words.lastIndexOf(true)]?.find((option) => nameOf(params, record).endsWith(option));
  return Array.from({ length: params.lookalikes }, () => {
    const lookalike = drawRecord(params, random, used, word);
    setCondition(params, random, { record: lookalike, write: writeOf(params, write), allowed: true });
    return lookalike;
  });
}

/**
 * Undefined if the draw does not work out: a computed value outside its schema.
 * @type {(params: Params, seed: number, random: Random) => Instance | undefined}
 */
function drawInstance(params, seed, random) {
  const special = !isTwin(params, seed);
  const plan = planOf(params, special);
  const key = draw(random, params.world.lookup.keyVocabulary);
  /** @type {Set<string>} */
  const used = new Set();
  /** @type {Request[]} */
  const drawn = [];
  /** @type {Values[]} */
  const records = [];
  for (let n = 0; n < plan.requests; n += 1) {
    const request = drawRequest(params, random, { plan, used, before: drawn });
    const lookalikes = plan.similar ? drawLookalikes(params, random, { request, used }) : [];
    drawn.push({ ...request, lookalike: lookalikes[lookalikes.length - 1] ?? null });
    if (request.record) records.push(request.record, ...lookalikes);
  }
  const requests = /** @type {[Request, ...Request[]]} */ (drawn);
  const [fewest, most] = params.records;
  const size = fewest + Math.floor(random() * (most - fewest + 1));
  while (records.length < size) records.push(drawRecord(params, random, used));
  const wanted = requests.map(({ write, record, said }) => ({
    name: write,
    arguments: argumentsOf(writeOf(params, write), { record: record ?? {}, said, marked: plan.marker, key }),
  }));
  const allowed = wanted.every((action) => {
    const tool = toolOf(params, action.name);
    return tool && fits(tool, action.arguments);
  });
  if (!plan.forbidden && !allowed) return undefined;
  return {
    seed,
    special,
    key,
    known: !plan.keyMissing,
    requests,
    records: shuffle(random, records),
    wanted: plan.forbidden ? [] : wanted,
    amount: plan.question ? amountOf(params, requests[0], plan.marker) : null,
    first: firstMessage(params, random, { plan, requests, key }),
    made: [],
    settled: [],
    texts: [],
    looked: false,
    invented: false,
    asked: false,
    done: false,
  };
}

const DRAWS = 200;

/**
 * @param {Params} params
 * @param {(text: string) => boolean} isForbidden
 * @param {number} seed
 */
export function instanceOf(params, isForbidden, seed) {
  for (let attempt = 0; attempt < DRAWS; attempt += 1) {
    const instance = drawInstance(params, seed, randomOf(`${params.capability} ${seed} ${attempt}`));
    if (instance && !isForbidden(instance.first)) return instance;
  }
  throw new Error(`seed ${seed}: no instance that is allowed in ${DRAWS} draws`);
}
