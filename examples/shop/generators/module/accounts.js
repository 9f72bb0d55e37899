/**
 * What an account holds: records, and things to ask for. No two records share a word or an identifier but where they
 * are to be taken for one another; an account is drawn once for both of its instances.
 */
import { draw, drawParts, pick, shuffle, valueOf, withLastWord } from './random.js';
import { nameOf, vocabularyOf, writeOf } from './records.js';

/** @typedef {import('../params').Params} Params */
/** @typedef {import('../params').Values} Values */
/** @typedef {import('../world').Write} Write */
/** @typedef {import('./random.js').Random} Random */

/** What holds of a request in an instance. @typedef {{forbidden: boolean, similar: boolean}} Condition */

/** A record, by what holds of the account's request `of`. @typedef {{of: number, as: (condition: Condition) => Values}} Slot */

/**
 * Something to ask for, the record that it acts on, and those that could be taken for it.
 * @typedef {{write: string, said: Values, record: Slot | null, lookalikes: Slot[]}} Wish
 */

/** @typedef {{key: string | number, wishes: Wish[], slots: Slot[]}} Account */

const TRIES = 50;
const WORD = /^[a-z]{2,}$/i;

/**
 * A record whose words are in no other record; identifiers are unique. `alike` is the same, with `word` in the place of its name's last one.
 * @param {Params} params
 * @param {Random} random
 * @param {{used: Set<string>, identifying: ReadonlySet<string>, word?: string | undefined}} so
 * @returns {{record: Values, alike: Values}}
 */
export function drawRecord(params, random, { used, identifying, word }) {
  /** @type {Values} */
  const record = {};
  /** @type {Values} */
  const alike = word === undefined ? record : {};
  for (const { name, vocabulary } of params.world.lookup.fields) {
    if (!identifying.has(name)) {
      alike[name] = record[name] = draw(random, vocabulary);
      continue;
    }
    const last = name === params.named ? word : undefined;
    /** @type {string[]} */
    let parts = [];
    let [own, other] = ['', ''];
    for (let tries = 0; tries === 0 || (tries < TRIES && (used.has(own) || used.has(other))); tries += 1) {
      parts = drawParts(random, vocabulary, used);
      own = parts.join('');
      other = last === undefined ? own : withLastWord(vocabulary, parts, last).join('');
    }
    alike[name] = valueOf(vocabulary, other);
    record[name] = valueOf(vocabulary, own);
    for (const part of parts) if (WORD.test(part)) used.add(part);
    used.add(own).add(other);
  }
  return { record, alike };
}

/**
 * What sets a record's condition so that the write is allowed, and so that it is not.
 * @type {(params: Params, random: Random, write: Write) => Record<'allowed' | 'refused', (record: Values) => Values>}
 */
function drawCondition(params, random, { precondition }) {
  if (!precondition) return { allowed: (record) => record, refused: (record) => record };
  const { field, value } = precondition;
  const [options = []] = vocabularyOf(params, field).parts;
  const other = pick(
    random,
    options.filter((option) => option !== value),
  );
  return { allowed: (record) => ({ ...record, [field]: value }), refused: (record) => ({ ...record, [field]: other }) };
}

/**
 * @param {Params} params
 * @param {Random} random
 * @param {{of: number, before: readonly Wish[], used: Set<string>, identifying: ReadonlySet<string>}} so
 * @returns {Wish}
 */
function drawWish(params, random, { of, before, used, identifying }) {
  const free = params.requested
    .map((tool) => writeOf(params, tool))
    .filter(({ onRecord, tool }) => onRecord || !before.some((wish) => wish.write === tool));
  const write = pick(random, free);
  const said = Object.fromEntries(
    write.arguments.flatMap((argument) =>
      argument.from === 'said' ? [[argument.name, draw(random, argument.vocabulary)]] : [],
    ),
  );
  if (!write.onRecord) return { write: write.tool, said, record: null, lookalikes: [] };
  const { record } = drawRecord(params, random, { used, identifying });
  const { allowed, refused } = drawCondition(params, random, write);
  const [ifAllowed, ifRefused] = [allowed(record), refused(record)];
  const slot = { of, as: (/** @type {Condition} */ { forbidden }) => (forbidden ? ifRefused : ifAllowed) };
  return { write: write.tool, said, record: slot, lookalikes: [] };
}

/**
 * Records that could be acted on as well, and, where they are similar, have the last word of the wish's record.
 * @param {Params} params
 * @param {Random} random
 * @param {{wish: Wish, used: Set<string>, identifying: ReadonlySet<string>}} of
 * @returns {Slot[]}
 */
function drawLookalikes(params, random, { wish: { write, record }, used, identifying }) {
  if (!record) return [];
  const { parts, words } = vocabularyOf(params, params.named);
  const name = nameOf(params, record.as({ forbidden: false, similar: false }));
  const word = parts[words.lastIndexOf(true)]?.find((option) => name.endsWith(option));
  return Array.from({ length: params.lookalikes }, () => {
    const drawn = drawRecord(params, random, { used, identifying, word });
    const { allowed } = drawCondition(params, random, writeOf(params, write));
    const [apart, alike] = [allowed(drawn.record), allowed(drawn.alike)];
    return { of: record.of, as: (/** @type {Condition} */ { similar }) => (similar ? alike : apart) };
  });
}

/**
 * @param {Params} params
 * @param {(what: string) => Random} draws
 * @returns {Account}
 */
export function drawAccount(params, draws) {
  const { plans, world, named, records } = params;
  const key = draw(draws('key'), world.lookup.keyVocabulary);
  const identifying = new Set([
    named,
    ...world.writes.flatMap((write) => write.arguments.flatMap(({ name, from }) => (from === 'record' ? [name] : []))),
  ]);
  /** @type {Set<string>} */
  const used = new Set();
  /** @type {Wish[]} */
  const wishes = [];
  for (let of = 0; of < Math.max(plans.special.requests, plans.twin.requests); of += 1) {
    const wish = drawWish(params, draws(`request ${of}`), { of, before: wishes, used, identifying });
    // The first request is what the account is about.
    if (of === 0 && (plans.special.similar || plans.twin.similar))
      wish.lookalikes = drawLookalikes(params, draws(`lookalikes ${of}`), { wish, used, identifying });
    wishes.push(wish);
  }
  const slots = wishes.flatMap(({ record, lookalikes }) => (record ? [record, ...lookalikes] : []));
  const [fewest, most] = records;
  const size = fewest + Math.floor(draws('size')() * (most - fewest + 1));
  for (let n = 0; slots.length < size; n += 1) {
    const { record } = drawRecord(params, draws(`record ${n}`), { used, identifying });
    slots.push({ of: 0, as: () => record });
  }
  return { key, wishes, slots: shuffle(draws('order'), slots) };
}
