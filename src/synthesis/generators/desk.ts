/**
 * Second half of every generated module's text: the desk itself. Invariants: reward is 1 exactly if the conversation ended, the account
 * was looked up, the writes are the wanted ones and no other, and what had to be said (and nothing that must not be) was said; partial
 * credit never exceeds 0.25, is not earned by doing nothing, and is not lost by trying the missing part.
 */
export const DESK = String.raw`
const { world, wording } = params;
const toolOf = (name) => params.tools.find((tool) => tool.name === name);
const isTwin = (seed) => (seed * 0.6180339887498949) % 1 < params.twins;
const planOf = (special) => (special ? params.special : params.twin);
const writeOf = (name) => world.writes.find((write) => write.tool === name);

export const describe = () => ({ policy: params.policy, tools: params.tools, maxSteps: params.maxSteps });

// A record whose words are in no other record, apart from "word"; identifiers are unique.
function drawRecord(random, used, word) {
  const record = {};
  for (const { name, vocabulary } of world.lookup.fields) {
    const identifies = name === params.named || world.writes.some((w) => w.arguments.some((a) => a.name === name && a.from === 'record'));
    let drawn;
    for (let tries = 0; tries < 50 && (drawn === undefined || (identifies && used.has(drawn.join('')))); tries += 1)
      drawn = drawParts(random, vocabulary, identifies ? used : new Set(), name === params.named ? word : undefined);
    record[name] = value(vocabulary, drawn.join(''));
    if (identifies) drawn.filter((part) => /^[a-z]{2,}$/i.test(part)).concat(drawn.join('')).forEach((part) => used.add(part));
  }
  return record;
}
const vocabularyOf = (field) => world.lookup.fields.find((f) => f.name === field).vocabulary;
function setStatus(random, record, write, allowed) {
  if (!write.precondition) return;
  const { field, value: needed } = write.precondition;
  const others = vocabularyOf(field).parts[0].filter((option) => option !== needed);
  record[field] = allowed ? needed : pick(random, others);
}
const nameOf = (record) => String(record[params.named]);

function argumentsOf(write, record, said, marked, key) {
  return Object.fromEntries(write.arguments.map((a) => {
    if (a.from === 'key') return [a.name, key];
    if (a.from === 'said') return [a.name, said[a.name]];
    if (a.from === 'computed') return [a.name, record[a.field] + (marked ? a.offset : 0)];
    return [a.name, record[a.name]];
  }));
}
// What the user hears when asking how much: the computed argument, if the write has one, else the record's field.
function amountOf({ write, record, said }, marked) {
  const computed = writeOf(write).arguments.find((a) => a.from === 'computed' && a.field === world.tell.field);
  return computed ? record[computed.field] + (marked ? computed.offset : 0) : record[world.tell.field];
}

// An instance, or undefined if the draw does not work out (a computed value outside its schema).
function instance(seed, random) {
  const special = !isTwin(seed);
  const plan = planOf(special);
  const used = new Set();
  const key = draw(random, world.lookup.keyVocabulary);
  const requests = [];
  const records = [];
  for (let n = 0; n < plan.requests; n += 1) {
    const free = params.requested.map(writeOf).filter((w) => w.onRecord || !requests.some((r) => r.write === w.tool));
    const write = pick(random, free);
    const said = Object.fromEntries(write.arguments.filter((a) => a.from === 'said').map((a) => [a.name, draw(random, a.vocabulary)]));
    const request = { write: write.tool, said, record: null, lookalike: null };
    if (write.onRecord) {
      request.record = drawRecord(random, used);
      setStatus(random, request.record, write, !plan.forbidden);
      records.push(request.record);
      for (let i = 0; i < (plan.similar ? params.lookalikes : 0); i += 1) {
        const { parts, words } = vocabularyOf(params.named);
        const word = parts[words.lastIndexOf(true)].find((option) => nameOf(request.record).endsWith(option));
        request.lookalike = drawRecord(random, used, word);
        setStatus(random, request.lookalike, write, true);
        records.push(request.lookalike);
      }
    }
    requests.push(request);
  }
  const [fewest, most] = params.records;
  const size = fewest + Math.floor(random() * (most - fewest + 1));
  while (records.length < size) records.push(drawRecord(random, used));
  const wanted = plan.forbidden ? [] : requests.map((r) => ({
    name: r.write, arguments: argumentsOf(writeOf(r.write), r.record ?? {}, r.said, plan.marker, key),
  }));
  if (!wanted.every((action) => fits(toolOf(action.name), action.arguments))) return undefined;
  return {
    seed, special, key, known: !plan.keyMissing, requests, records: shuffle(random, records), wanted,
    amount: plan.question ? amountOf(requests[0], plan.marker) : null,
    first: firstMessage(random, plan, requests, key),
    made: [], settled: [], texts: [], looked: false, invented: false, asked: false, done: false,
  };
}

function firstMessage(random, plan, requests, key) {
  const count = (skeleton, slot) => skeleton.split(slot).length - 1;
  const fitting = wording.skeletons.filter((s) =>
    count(s, '{request}') === requests.length && count(s, '{marker}') === (plan.marker ? 1 : 0) &&
    count(s, '{question}') === (plan.question ? 1 : 0) && count(s, '{key}') === (plan.keyMissing ? 0 : 1));
  const parts = requests.map((r) => fill(writeOf(r.write).request, { ...r.record, ...r.said }));
  const marker = writeOf(requests[0].write).arguments.find((a) => a.from === 'computed')?.marker;
  const question = plan.question ? fill(world.tell.question, requests[0].record) : '';
  const given = world.ask ? world.ask.answer.replace('%', key) : world.lookup.key + ' ' + key + ' .';
  const fallback = (plan.keyMissing ? '' : '{key} ') + requests.map(() => '{request}').join(' and ') +
    (plan.marker ? ' , {marker}' : '') + ' .' + (plan.question ? ' {question}' : '');
  return (fitting.length > 0 ? pick(random, fitting) : fallback).replace(/\{(\w+)\}/g, (_, slot) =>
    slot === 'request' ? parts.shift() : { marker, question, key: given }[slot]);
}

export function make(seed) {
  for (let attempt = 0; attempt < 200; attempt += 1) {
    const state = instance(seed, randomOf(params.errorClass + ' ' + seed + ' ' + attempt));
    if (state && !hasForbidden(state.first)) return state;
  }
  throw new Error('seed ' + seed + ': no instance that is allowed in 200 draws');
}

export const start = (state) => [{ role: 'system', content: params.policy }, { role: 'user', content: state.first }];

const shown = (state) => state.records.filter((record) => !state.settled.includes(nameOf(record)));
const rendered = (record) => world.lookup.fields.map(({ name }) => record[name]).join(' ');

// Runs one call on the state in place and returns the observation.
function observe(state, call) {
  const tool = toolOf(call.name);
  if (!tool) return wording.unknownTool;
  if (!fits(tool, call.arguments)) return wording.badArguments;
  if (call.name === world.lookup.tool) {
    if (!state.known) state.invented = true;
    if (call.arguments[world.lookup.key] !== state.key) return wording.unknownKey;
    state.looked = true;
    return shown(state).map(rendered).join(' ; ') || wording.unknownRecord;
  }
  const write = writeOf(call.name);
  const from = (source) => write.arguments.filter((a) => a.from === source);
  if (!from('key').every((a) => call.arguments[a.name] === state.key)) return wording.unknownKey;
  if (write.onRecord) {
    const record = shown(state).find((r) => from('record').every((a) => r[a.name] === call.arguments[a.name]));
    if (!record) return wording.unknownRecord;
    state.settled.push(nameOf(record));
  }
  state.made.push({ name: call.name, arguments: call.arguments });
  return wording.done;
}

function asksForKey(text) {
  if (!world.ask || !text.includes('?')) return false;
  const words = new Set(wordsOf(text));
  const needed = wordsOf(world.ask.question);
  return needed.filter((word) => words.has(word)).length * 2 >= needed.length;
}

export function step(previous, message) {
  const state = JSON.parse(JSON.stringify(previous));
  if (message.content.trim() !== '') state.texts.push(message.content);
  const calls = message.toolCalls ?? [];
  if (calls.length > 0) {
    return { state, done: false, messages: calls.map((call) => ({ role: 'tool', toolCallId: call.id, content: observe(state, call) })) };
  }
  if (asksForKey(message.content)) {
    state.asked = true;
    state.known = true;
    return { state, done: false, messages: [{ role: 'user', content: world.ask.answer.replace('%', state.key) }] };
  }
  state.done = true;
  return { state, done: true, messages: [{ role: 'user', content: wording.farewell }] };
}
`;
