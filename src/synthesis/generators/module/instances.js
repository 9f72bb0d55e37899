/**
 * Instances. Invariant: an instance is a function of the parameters and the seed; a special one and its twin are the same in account, request
 * and order of the records, and differ in what the capability is about alone.
 */
import { bySlots, firstMessage } from './first-message.js';
import { amountOf, argumentsOf, nameOf, planOf, toolOf, vocabularyOf, writeOf } from './records.js';
import { draw, drawParts, hashOf, pick, randomOf, shuffle, valueOf, withLastWord } from './random.js';
import { forbiddenIn } from './text.js';
import { fits } from './validation.js';

/** @typedef {import('../params').Params} Params */
/** @typedef {import('../capabilities').Plan} Plan */
/** @typedef {import('../instance').Instance} Instance */
/** @typedef {import('../instance').Request} Request */
/** @typedef {import('../instance').Values} Values */
/** @typedef {import('../world').Write} Write */
/** @typedef {import('./random.js').Random} Random */

/**
 * Seeds come in pairs: an even one is the special case, the odd one after it its twin, of the same account and request.
 * @type {(seed: number) => boolean}
 */
export const isTwin = (seed) => seed % 2 !== 0;

const TRIES = 50;

/**
 * What is read off the parameters once: a module is loaded once and makes thousands of instances.
 * @typedef {{isForbidden: (text: string) => boolean, identifying: ReadonlySet<string>, skeletons: ReadonlyMap<string, string[]>}} Prepared
 */

/** @type {(params: Params) => Prepared} */
export const preparedOf = ({ forbidden, world, named, wording }) => ({
  isForbidden: forbiddenIn(forbidden),
  identifying: new Set([
    named,
    ...world.writes.flatMap((write) => write.arguments.flatMap(({ name, from }) => (from === 'record' ? [name] : []))),
  ]),
  skeletons: bySlots(wording.skeletons),
});

const WORD = /^[a-z]{2,}$/i;

/**
 * A record whose words are in no other record; identifiers are unique. `alike`: it may have, or (`shared`) has `word` in the place of its
 * name's last one, and everything else is the same in both cases.
 * @param {Params} params
 * @param {Random} random
 * @param {{used: Set<string>, identifying: ReadonlySet<string>, alike?: {word: string, shared: boolean}}} so
 * @returns {Values}
 */
export function drawRecord(params, random, { used, identifying, alike }) {
  /** @type {Values} */
  const record = {};
  for (const { name, vocabulary } of params.world.lookup.fields) {
    if (!identifying.has(name)) {
      record[name] = draw(random, vocabulary);
      continue;
    }
    const word = name === params.named ? alike?.word : undefined;
    /** @type {string[]} */
    let parts = [];
    let [own, other] = ['', ''];
    for (let tries = 0; tries === 0 || (tries < TRIES && (used.has(own) || used.has(other))); tries += 1) {
      parts = drawParts(random, vocabulary, used);
      own = parts.join('');
      other = word === undefined ? own : withLastWord(vocabulary, parts, word).join('');
    }
    record[name] = valueOf(vocabulary, alike?.shared ? other : own);
    for (const part of parts) if (WORD.test(part)) used.add(part);
    used.add(own).add(other);
  }
  return record;
}

/** @type {(params: Params, random: Random, on: {record: Values, write: Write, allowed: boolean}) => void} */
function setCondition(params, random, { record, write, allowed }) {
  if (!write.precondition) return;
  const { field, value } = write.precondition;
  const [options = []] = vocabularyOf(params, field).parts;
  // Drawn in both cases, so that all that follows is the same in a special case and its twin.
  const other = pick(
    random,
    options.filter((option) => option !== value),
  );
  record[field] = allowed ? value : other;
}

/**
 * One thing to ask for, and the records that it is about.
 * @param {Params} params
 * @param {Prepared} prepared
 * @param {Random} random
 * @param {{plan: Plan, used: Set<string>, before: readonly Request[]}} so
 * @returns {Request}
 */
function drawRequest(params, { identifying }, random, { plan, used, before }) {
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
  const record = drawRecord(params, random, { used, identifying });
  setCondition(params, random, { record, write, allowed: !plan.forbidden });
  return { write: write.tool, said, record, lookalike: null };
}

/**
 * Records that could be acted on as well, and, if they are `shared`, have the last word of the request's record.
 * @param {Params} params
 * @param {Prepared} prepared
 * @param {Random} random
 * @param {{request: Request, used: Set<string>, shared: boolean}} of
 */
function drawLookalikes(params, { identifying }, random, { request: { write, record }, used, shared }) {
  if (!record) return [];
  const { parts, words } = vocabularyOf(params, params.named);
  const word = parts[words.lastIndexOf(true)]?.find((option) => nameOf(params, record).endsWith(option));
  return Array.from({ length: params.lookalikes }, () => {
    const alike = word === undefined ? undefined : { word, shared };
    const lookalike = drawRecord(params, random, { used, identifying, ...(alike && { alike }) });
    setCondition(params, random, { record: lookalike, write: writeOf(params, write), allowed: true });
    return lookalike;
  });
}

/**
 * What one case asks for is in the account of the other too: a second record, a record that could be taken for the one that is meant.
 * Undefined if the draw does not work out: a computed value outside its schema.
 * @type {(params: Params, prepared: Prepared, seed: number, draws: (what: string) => Random) => Instance | undefined}
 */
function drawInstance(params, prepared, seed, draws) {
  const { identifying, skeletons } = prepared;
  const special = !isTwin(seed);
  const plan = planOf(params, special);
  const plans = [params.special, params.twin];
  const asked = Math.max(...plans.map(({ requests }) => requests));
  const similar = plans.some((one) => one.similar);
  const key = draw(draws('key'), params.world.lookup.keyVocabulary);
  /** @type {Set<string>} */
  const used = new Set();
  /** @type {Request[]} */
  const drawn = [];
  /** @type {Values[]} */
  const records = [];
  for (let n = 0; n < asked; n += 1) {
    const request = drawRequest(params, prepared, draws(`request ${n}`), { plan, used, before: drawn });
    const others = similar
      ? drawLookalikes(params, prepared, draws(`lookalikes ${n}`), { request, used, shared: plan.similar })
      : [];
    drawn.push({ ...request, lookalike: (plan.similar && others[others.length - 1]) || null });
    if (request.record) records.push(request.record, ...others);
  }
  const requests = /** @type {[Request, ...Request[]]} */ (drawn.slice(0, plan.requests));
  const [fewest, most] = params.records;
  const size = fewest + Math.floor(draws('size')() * (most - fewest + 1));
  for (let n = 0; records.length < size; n += 1)
    records.push(drawRecord(params, draws(`record ${n}`), { used, identifying }));
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
    records: shuffle(draws('order'), records),
    wanted: plan.forbidden ? [] : wanted,
    amount: plan.question ? amountOf(params, requests[0], plan.marker) : null,
    first: firstMessage(params, draws('first message'), { plan, requests, key, skeletons }),
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
 * @param {Prepared} prepared
 * @param {number} seed
 */
export function instanceOf(params, prepared, seed) {
  const pair = Math.floor(seed / 2);
  for (let attempt = 0; attempt < DRAWS; attempt += 1) {
    const before = hashOf(`${params.capability} ${pair} ${attempt} `);
    const draws = (/** @type {string} */ what) => randomOf(what, before);
    const both = [2 * pair, 2 * pair + 1].map((one) => drawInstance(params, prepared, one, draws));
    // The pair is drawn again as a whole: a special case and a twin of different draws would not belong together.
    if (both.every((one) => one && !prepared.isForbidden(one.first)))
      return /** @type {Instance} */ (both[seed - 2 * pair]);
  }
  throw new Error(`seed ${seed}: no instance that is allowed in ${DRAWS} draws`);
}
