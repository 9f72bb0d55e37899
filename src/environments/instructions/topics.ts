/**
 * What a text is made of, counted as a reader of English counts, whatever its case and markup; and what the tasks are about, with words that a text
 * about it is likely to have. No topic, and no content word of one, is in both splits.
 */
import type { Split } from '../../domain/environment';

const WORD = /\d+(?:[.,:]\d+)+|[\p{L}\d]+(?:['’\-‑][\p{L}\d]+)*/gu;

/** Words as written: `don't`, `well-known`, `1,000` and `3.5` are one each; punctuation and markup are none. */
export const wordsOf = (text: string): string[] => text.match(WORD) ?? [];

export const plainWords = (text: string): string[] =>
  wordsOf(text).map((word) => word.toLowerCase().replaceAll('’', "'"));

/** Lines that hold anything, without the white space around them. */
export const linesOf = (text: string): string[] =>
  text
    .split(/\r\n|[\r\n\u2028\u2029]/)
    .map((line) => line.trim())
    .filter(Boolean);

export const paragraphsOf = (text: string): string[] =>
  text
    .replaceAll('\r\n', '\n')
    .split(/\n[^\S\n]*\n\s*/)
    .map((block) => block.trim())
    .filter((block) => wordsOf(block).length > 0);

const BULLET = /^[-*•–][^\S\n]+(?=\S)/;
const NUMBER = /^(\d+)[.)][^\S\n]+(?=\S)/;

/** What stands after each bullet; a dash within a line is none. */
export const bulletsOf = (text: string): string[] =>
  linesOf(text).flatMap((line) => (BULLET.test(line) ? [line.replace(BULLET, '')] : []));

/** The numbers that lines begin with: `1.` or `1)`. */
export const numbersOf = (text: string): number[] =>
  linesOf(text).flatMap((line) => {
    const found = NUMBER.exec(line);
    return found ? [Number(found[1])] : [];
  });

/** A full stop after one of these ends no sentence. */
const TITLES = /(?:^|[\s("'*])(?:mr|mrs|ms|dr|prof|st|jr|sr|vs|no|e\.g|i\.e|p\.s)\.$/i;
/** Nor after these, unless the text goes on with a capital, or ends. */
const ABBREVIATIONS = /(?:^|[\s("'*])(?:etc|approx|a\.m|p\.m|u\.s|u\.k)\.$/i;
/** A letter by itself, as in `J. Smith`; `I.` may well end a sentence. */
const INITIAL = /(?:^|\s)(?!I\.)[A-Z]\.$/;
const END = /(?:\.{2,}|[.!?…]+)["'”’)\]*_]*(?=\s|$)/gu;
const ENDED = /[.!?…]["'”’)\]*_]*$/u;

/**
 * Sentences: what ends in `.`, `!` or `?` before white space, an empty line or the next item of a list; what is left at the end is one as well.
 * An ellipsis before a small letter ends none, unless the text has no capitals at all.
 */
export function sentencesOf(text: string): string[] {
  const hasCapitals = /\p{Lu}/u.test(text);
  return paragraphsOf(text)
    .flatMap(itemsOf)
    .flatMap((block) => split(block, hasCapitals))
    .filter((sentence) => wordsOf(sentence).length > 0);
}

/** A block's items without their marks, or the block as one line. */
function itemsOf(block: string): string[] {
  const items: string[] = [];
  for (const line of linesOf(block)) {
    const isItem = BULLET.test(line) || NUMBER.test(line);
    if (isItem || items.length === 0) items.push(line.replace(BULLET, '').replace(NUMBER, ''));
    else items.push(`${items.pop()} ${line}`);
  }
  return items;
}

function split(block: string, hasCapitals: boolean): string[] {
  const sentences: string[] = [];
  let begun = 0;
  for (const { index, 0: mark } of block.matchAll(END)) {
    const end = index + mark.length;
    if (!isEnd({ before: block.slice(begun, end), after: block.slice(end).trim(), mark, hasCapitals })) continue;
    sentences.push(block.slice(begun, end).trim());
    begun = end;
  }
  return [...sentences, block.slice(begun).trim()].filter(Boolean);
}

function isEnd(o: { before: string; after: string; mark: string; hasCapitals: boolean }): boolean {
  const { before, after, mark, hasCapitals } = o;
  if (after === '') return true;
  if (TITLES.test(before) || INITIAL.test(before)) return false;
  const goesOn = hasCapitals && /^["'“‘(*]*\p{Ll}/u.test(after);
  if (ABBREVIATIONS.test(before)) return hasCapitals && !goesOn;
  return !(goesOn && /^(?:\.{2,}|…)/.test(mark));
}

/** True if the last sentence is not cut off. */
export const isFinished = (text: string): boolean => ENDED.test(text.trim());

export function runsOf(words: readonly string[], n: number): string[] {
  return Array.from({ length: Math.max(0, words.length - n + 1) }, (_, i) => words.slice(i, i + n).join(' '));
}

/** A word without the ending of a plural, a possessive or a verb form, so that `bees` and `bee` are one. */
export function stem(word: string): string {
  const bare = word.replace(/'s?$/, '');
  if (bare.length > 4 && bare.endsWith('ies')) return `${bare.slice(0, -3)}y`;
  const cut = bare.replace(/(?<=\p{L}{3})(?:ing|ed|es|s)$/u, '');
  return cut.replace(/(?<=\p{L}{3})e$/u, '').replace(/([^aeiou])\1$/u, '$1');
}

export interface Topic {
  name: string;
  /** The name's own content words, then related ones. */
  own: string[];
  related: string[];
}

const lists: Record<Split, string> = {
  train: `
bees: honey hive flowers pollen insects nectar queen wings colony buzz
the moon: night sky stars light earth planet orbit lunar space craters
rain: water clouds umbrella wet storm drops weather puddles ground fall
coffee: cup beans drink morning caffeine roast brew aroma milk taste
dogs: pet loyal bark puppy animal walk owner tail breed companion
trains: station tracks travel railway passengers engine ride tickets journey wheels
the desert: sand hot dry sun camel dunes heat cactus plants climate
bread: bake flour dough oven loaf yeast butter wheat baker slice
chess: game board pieces king queen players strategy pawn moves match
libraries: books read shelves quiet study learn librarian knowledge stories borrow
winter: snow cold ice coat season warm holidays frost months skiing
a birthday party: cake friends candles gifts balloons celebrate guests fun games family
bicycles: ride wheels pedal bike helmet road cycling chain transport exercise
gardens: plants flowers soil grow vegetables seeds roses trees green beautiful
elephants: trunk large herd animal ears ivory tusks gentle wild grass
the ocean: water waves sea fish deep salt marine blue whales beach
tea: leaves cup drink hot water green herbal pot brew flavor
robots: machine human technology tasks metal work programmed computer future artificial
pizza: cheese dough tomato sauce slice toppings oven italian crust delicious
volcanoes: lava eruption mountain ash magma hot rock erupt earth gases
owls: night bird feathers eyes hunt prey wise fly forest wings
kites: wind sky fly string tail colorful air children high paper
honesty: truth trust honest lie people promises values relationships respect integrity
a rainbow: colors sky sunlight red blue rain bright arc violet light
airports: planes flight passengers luggage travel terminal gate security fly runway
apples: fruit tree red green juice sweet crunchy healthy orchard pie
the violin: music strings bow play instrument sound orchestra notes wood melody
swimming: pool water lake exercise stroke dive float beach healthy lifeguard
castles: king stone walls tower knights medieval moat history queen fortress
spiders: web legs insects silk eight prey fear venom spin creatures
glasses: eyes see lenses vision frames wear read sight clear eyesight
friendship: friends trust people together share school support bond loyal care
mirrors: reflection glass see image light wall face look reflect surface
cheese: milk flavor cow goat taste aged cheddar dairy sandwich soft
the forest: trees animals leaves birds green wood nature wildlife plants path
football: team ball goal players game field sport score kick fans
penguins: ice birds antarctica swim fish cold black white waddle colony
cameras: pictures photos lens capture photography image film memories light take
salt: food taste sea flavor sodium mineral cooking crystals water season
teachers: students school learn class education lesson classroom knowledge help subject
dinosaurs: extinct fossils ancient creatures million bones earth reptiles large lived
candles: light wax flame scent burn fire glow warm wick dark
maps: roads places directions world location city find navigate travel guide
jazz: music saxophone piano musicians rhythm improvisation band trumpet blues notes
potatoes: food fries vegetable mashed boiled soil cook farmers grow chips
space travel: rocket astronauts planets earth moon stars mars spacecraft universe explore
laughter: laugh joke funny smile humor happy joy people sound fun
tigers: stripes animal jungle wild predator hunt roar orange fur cats
soap: clean wash hands water bubbles skin dirt bath germs scent
markets: buy sell food fruit vegetables vendors shop stalls people fresh
sleep: night dream rest bed body tired health hours pillow brain
bridges: river cross road steel connect water build structure cars engineers
chocolate: sweet cocoa dark milk candy taste dessert beans treat flavor
grandparents: family grandmother grandfather stories love old wisdom children grandchildren visit
ants: colony insects small work food queen tiny nest soil workers
clocks: time hours minutes hands tick watch alarm wall second late
beaches: sand sea waves sun swim ocean summer shells water vacation
poetry: poem words rhyme poet verse emotions lines language write feelings
turtles: shell slow sea swim reptiles eggs water ocean creatures land
neighbors: house street community friendly help live neighborhood next people door
`,
  test: `
cats: kitten pet purr fur whiskers animal meow mice paws sleep
lighthouses: light sea ships coast tower sailors beacon shore ocean guide
snow: winter cold white flakes ice snowman snowflakes fall ground season
soup: bowl hot vegetables broth spoon meal chicken warm cook tomato
horses: ride gallop animal farm mane race saddle stable strong rider
rivers: water flow fish lake stream valley boats current sea banks
the guitar: music strings play chords instrument song sound band acoustic notes
dancing: music stage steps rhythm move movement ballet body partner feet
wolves: pack howl wild animal forest hunt predators fur wolf prey
a picnic: food basket park blanket sandwiches family friends outdoors sun grass
hospitals: doctors nurses patients health sick care medical beds treatment medicine
oranges: fruit juice vitamin sweet peel citrus tree color healthy taste
museums: art history paintings exhibits gallery visit ancient artifacts culture learn
shoes: feet wear walk leather laces comfortable running foot pair fashion
the stars: night sky light galaxy universe shine planets bright sun twinkle
patience: wait calm time virtue patient slow people mind goals understanding
frogs: pond jump green amphibians water tadpoles croak insects legs leap
farmers: crops land animals food field farm cows harvest grow tractor
thunderstorms: lightning rain clouds loud storm thunder wind weather electricity sky
painting: colors brush art canvas artist picture drawing create beautiful oil
bananas: fruit yellow peel sweet potassium monkeys tropical healthy snack ripe
ships: sea ocean sail captain cargo port water crew boat voyage
kindness: kind help people smile others compassion care heart friends gentle
butterflies: wings flowers colorful caterpillar insects fly nectar beautiful garden cocoon
breakfast: eggs morning meal toast cereal food milk pancakes day eat
islands: sea beach water ocean land tropical palm coast sand boat
newspapers: news read articles stories paper journalists information print reporters page
camping: tent fire woods nature outdoors forest sleep stars hiking campfire
whales: ocean sea large mammals fish swim blue water giant creatures
doors: open close house room key handle wood lock enter knob
`,
};

const FUNCTION = new Set(['a', 'an', 'the']);

function read(line: string): Topic {
  const [name = '', words = ''] = line.split(': ');
  return { name, own: plainWords(name).filter((word) => !FUNCTION.has(word)), related: words.split(' ') };
}

export const TOPICS: Record<Split, Topic[]> = {
  train: lists.train.trim().split('\n').map(read),
  test: lists.test.trim().split('\n').map(read),
};

/** Stems of so many letters are found in longer words as well: `neighbor` in `neighborhood`. */
const PREFIX = 5;

/** How many of the topic's words a text has, each once: `bees` and `bee` are one. */
export function topicalStems(words: readonly string[], { own, related }: Topic): { own: number; related: number } {
  const found = [...new Set(words.flatMap((word) => word.split('-')).map(stem))];
  const has = (known: string) =>
    found.some((one) => one === known || (known.length >= PREFIX && one.startsWith(known)));
  const count = (known: readonly string[]) => [...new Set(known.map(stem))].filter(has).length;
  return { own: count(own), related: count(related) };
}
