// Rationale: In the failed attempts the agent answers a request for a text with the demand itself (the sentence about a required word) or with a comment that it does not know what to tell, while in the passed attempts at the same requests it simply writes a few words on the subject. The instances here have the same requests, with a light demand of the same form that draws attention away from the subject, and pay only for a text that comes at once to the subject that was named, so what is learned is to deliver that text in the target as well.
const targetTools = {};
// History:
// Round 1: first version.
// Round 2: filler numbers and the request, cut off at 4000 characters, passed; now a text that is too long is no answer,
//   numbers take up places among the words, and the request's own words around the subject do not name it.
// Round 3: a little too easy (58%, 21% always solved); the demanded word is an everyday word in place of the subject,
//   and the subject must come within the first 25 words, with comments at most a third of the text.
/*
 * Trains `deliver_text_on_named_subject`: at once a text about the subject, instead of words about the request.
 * Even seed: the subject is something of nature. Odd seed: the same request, and the subject is something that
 * people make or run. A text on the one is wrong for the other. The demand of form is the lure (agents repeat it or
 * comment on it); it is so easy that an ordinary short text on the subject keeps it.
 */
const policy = "Follow the user's instructions exactly.";

/* Each entry: the subject, how its word begins, words of its field (the first three are used by the solutions). */
const table = (text) =>
  text
    .trim()
    .split(/[\n|]/)
    .map((entry) => {
      const [name, stem, field] = entry.trim().split(' ');
      return { name, stem, field: field.split(',') };
    });
const NATURE = table(`
  horses horse manes,saddles,stables,gallop,hoof,hooves,ride,riding | owls owl nights,mice,wings,hoot,prey,feather
  elephants elephant trunks,tusks,herds,ivory,africa,grey,gray | whales whale oceans,krill,blowholes,humpback,baleen
  frogs frog ponds,tadpoles,flies,croak,jump,amphibian | butterflies butterfl caterpillars,cocoons,nectar,wings,flutter,flower
  spiders spider webs,silk,insects,legs,venom,eight | rabbits rabbit carrots,burrows,ears,hop,fur,bunn
  turtles turtle shells,eggs,swamps,slow,reptile,beach | cats cat whiskers,paws,kittens,purr,meow,feline,pet
  ducks duck beaks,feathers,lakes,quack,swim,pond | roses rose petals,thorns,scents,bloom,flower,red
  mushrooms mushroom spores,moss,soil,fung,edible,poison,toadstool | forests forest trees,leaves,deer,wood,branch,animal
  rivers river banks,fish,currents,water,stream,flowing | deserts desert sand,dunes,camels,dry,heat,cactus,oasis,hot
  snow snow flakes,ice,frost,cold,white,sled | thunder thunder lightning,storms,rumbles,loud,sky
  islands island palms,coasts,shores,tropic,sea | caves cave bats,tunnels,rocks,dark,stalactite,underground
  clouds cloud vapor,mist,storms,sky,float,fluffy,weather | tigers tiger stripes,jungles,claws,hunt,prey
  sharks shark teeth,gills,jaws,predator,bite | monkeys monkey bananas,tails,jungles,climb,swing,ape,primate
  dolphins dolphin waves,leaps,clicks,flipper,playful,ocean`);
const MADE = table(`
  trains train rails,stations,tracks,passenger,ticket,engine,locomotive | clocks clock hours,minutes,pendulums,ticking,alarm
  libraries librar books,shelves,readers,borrow,reading,novel,quiet | shoes shoe laces,heels,soles,leather,wear,sneaker,boot,feet
  pianos piano pedals,concerts,chords,key,music,tune | guitars guitar strings,chords,songs,music,band,strum
  bread bread flour,crusts,ovens,yeast,dough,loaf,loaves,bake | chocolate chocolate cocoa,sugar,milk,candy,sweet,dessert
  coffee coffee beans,cups,mornings,caffeine,drink,brew,espresso | soup soup bowls,spoons,broth,vegetable,noodle,tasty
  football football goals,teams,fans,ball,player,score,stadium | candles candle wax,wicks,flames,melt,burn
  mirrors mirror faces,frames,glass,reflect,image | castles castle towers,walls,knights,king,queen,moat,medieval
  boats boat sails,harbors,anchors,oars,captain,deck | umbrellas umbrella handles,showers,puddles,wet,shelter,fold
  hats hat brims,ribbons,straw,cap,head,wear,fashion | cameras camera photos,lenses,films,lens,picture,capture,zoom
  telephones telephone voices,wires,dials,phone,ring,communicat | lighthouses lighthouse lamps,keepers,cliffs,ship,beam,sailor
  schools school teachers,pupils,lessons,student,class,education | hospitals hospital nurses,doctors,patients,medical,sick,surgery
  birthdays birthday gifts,guests,balloons,party,parties,celebrat | newspapers newspaper headlines,editors,pages,article,journalis,print
  carpets carpet wool,patterns,looms,rug,floor,weav`);
const SUBJECTS = [...NATURE, ...MADE];
const subjectOf = (name) => SUBJECTS.find((each) => each.name === name);

const ASKS = [
  (name) => `Write a short text about ${name}.`,
  (name) => `Tell me about ${name}.`,
  (name) => `Write about ${name}.`,
  (name) => `Please write about ${name}.`,
  (name) => `I would like to read something about ${name}.`,
];
const EVERYDAY = ['and', 'the', 'of', 'in']; // each of the texts below holds all of them
const TEXTS = [
  (n, a, b, c) => `Anyone in the world who loves ${n} soon learns of ${a} and ${b}, and later about ${c} as well.`,
  (n, a, b, c) => `My aunt has a deep love for ${n}. She talks of ${a}, ${b} and ${c} in the garden all day long.`,
  (n, a, b, c) =>
    `Nothing in our village is loved more than ${n}. Every child there can tell stories of ${a}, ${b} and the ${c}.`,
  (n, a, b, c) => `Long ago people in the city knew little of ${n}. Now we often think of ${a}, ${b} and also ${c}.`,
  (n, a, b, c) => `When I think of ${n}, old memories of ${a} and ${b} in the sun come back, and sometimes ${c} too.`,
  (n, a, b, c) => `The story of ${n} is long and full of ${a}. Some in the town remember ${b}, others only ${c}.`,
];

function randomOf(seed) {
  let a = Math.imul(seed + 1, 0x9e3779b1);
  return (limit) => {
    a = (a + 0x6d2b79f5) | 0;
    let t = Math.imul(a ^ (a >>> 15), 1 | a);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) % limit;
  };
}

export const describe = () => ({ policy, tools: [], maxSteps: 4 });

function instance(seed, bare) {
  const special = seed % 2 === 0;
  const below = randomOf(Math.floor(seed / 2)); // both of a pair draw the same
  const nature = NATURE[below(NATURE.length)].name;
  const made = MADE[below(MADE.length)].name;
  const [ask, which, form] = [below(ASKS.length), below(4), below(2)];
  const [least, most] = [8 + below(5), 100 + 5 * below(20)];
  const mark = [';', 'q', 'z', ';'][below(4)];
  const pattern = below(TEXTS.length);
  const word = EVERYDAY[below(EVERYDAY.length)];
  const [subject, rival] = special ? [nature, made] : [made, nature];
  const demands = [
    ['word', word, [`Include the word "${word}".`, `The word "${word}" must appear in it.`][form]],
    ['at_least', least, [`Use at least ${least} words.`, `Write ${least} words or more.`][form]],
    ['at_most', most, [`Use at most ${most} words.`, `It must not be longer than ${most} words.`][form]],
    [
      'without',
      mark,
      mark === ';'
        ? ['Do not use any semicolons.', 'Write without semicolons.'][form]
        : `Do not use the letter "${mark}".`,
    ],
  ];
  const [kind, value, demand] = bare ? ['none', 0, ''] : demands[which];
  const request = demand === '' ? ASKS[ask](subject) : `${ASKS[ask](subject)} ${demand}`;
  const nothingYet = { text: '', overlong: false, idle: 0, done: false };
  return { special, subject, rival, kind, value, demand, request, pattern, ...nothingYet };
}
export const make = (seed) => instance(seed, false);
/* The subject alone, without a demand of form. */
export const easier = (seed) => instance(seed, true);

export const start = ({ request }) => [
  { role: 'system', content: policy },
  { role: 'user', content: request },
];

const LONGEST = 8000; // characters; what is longer is no short text
/* The first text that is not empty ends the conversation. */
export function step(before, message) {
  const state = JSON.parse(JSON.stringify(before)); // never change what was handed in
  const calls = Array.isArray(message.toolCalls) ? message.toolCalls : [];
  const content = typeof message.content === 'string' ? message.content : '';
  if (calls.length === 0 && content.trim() !== '') {
    state.text = content.slice(0, LONGEST);
    state.overlong = content.length > LONGEST; // nobody has read its end
    state.done = true;
    return { state, done: true, stopReason: 'user_stop', messages: [{ role: 'user', content: 'Thank you.' }] };
  }
  state.idle += 1;
  state.done = state.idle >= 3;
  const messages =
    calls.length > 0
      ? calls.map((call) => ({ role: 'tool', toolCallId: call.id, content: 'Error: there are no tools here.' }))
      : [{ role: 'user', content: state.done ? 'Goodbye.' : 'I am waiting for the text.' }];
  return { state, done: state.done, messages };
}

const plain = (text) => text.toLowerCase().replaceAll('’', "'");
/* Words and numbers: both take up room; only words make a text. */
const tokensOf = (text) => plain(text).match(/\p{L}+(?:['-]\p{L}+)*|\p{N}+/gu) ?? [];
const isWord = (token) => /\p{L}/u.test(token);
const wordsOf = (text) => tokensOf(text).filter(isWord);
const partsOf = (words) => words.flatMap((word) => word.split(/['-]/));

/* A word that begins like this; very short ones only as they are or in the plural. */
const has = (parts, stem) =>
  parts.some((part) => part === stem || part === `${stem}s` || (stem.length > 3 && part.startsWith(stem)));
/* The subject is named, or two words of its field are there. */
const isAbout = (parts, { stem, field }) =>
  has(parts, stem) || field.filter((each) => has(parts, each.replace(/s$/, ''))).length >= 2;

/* Without the runs of words that the request opens with and that hold its 'about': they only echo the subject. */
function withoutEcho(parts, request) {
  const asked = partsOf(wordsOf(request.split('.')[0]));
  const [own, run] = [[], []];
  for (const part of [...parts, '']) {
    if (asked.includes(part)) run.push(part);
    else {
      const words = run.splice(0);
      own.push(...(words.includes('about') ? [] : words), part);
    }
  }
  return own;
}

/* Sentences about the request or the talk itself: offers, apologies, comments, the instruction again. */
const SELF =
  /\b(help|assist|write|writing|provide|apologi[sz]e|unable|not sure|tell you|asked|answer|language model|understand)\b/;
const META = [
  /\b(excuse me|sorry|let me know|feel free|would you like|do you (want|need)|please|how (can|may) i)\b/,
  /\bi( would|'d) (like|love) to (know|read|hear|learn|see)\b/,
  /\byou (asked|said|wrote|requested|want me)\b/,
  /\b(the|this|that|your|my|a|short|following) (word|letter|sentence|text|paragraph|request|instruction|question|topic|subject|response|requirement|semicolon|prompt)s?\b/,
  /\b(must|should|needs to|has to) (not |also )?(appear|be used|contain|include|be included)\b/,
  /^[^a-z]*(you (can|could|should|must) |to )?(write|tell me|describe|include the|use at|do not use)\b/,
  /\b\d+ words\b/,
];
const isComment = (sentence) =>
  sentence.includes('?') ||
  (/\bi\b/.test(sentence) && SELF.test(sentence)) ||
  META.some((pattern) => pattern.test(sentence));
const sentencesOf = (text) => plain(text).match(/[^.!?:\n]+[.!?:\n]*/g) ?? [];

function copies(request, text) {
  const [asked, said] = [wordsOf(request), ` ${wordsOf(text).join(' ')} `];
  return asked.some((_, at) => at + 6 <= asked.length && said.includes(` ${asked.slice(at, at + 6).join(' ')} `));
}

function keeps({ kind, value, text }, words) {
  if (kind === 'word') return words.includes(value);
  if (kind === 'at_least') return tokensOf(text).length >= value;
  if (kind === 'at_most') return tokensOf(text).length <= value;
  if (kind === 'without') return !plain(text).includes(value);
  return true;
}

export function reward(state) {
  const { special, subject, rival, request, text, overlong, done } = state;
  const substance = sentencesOf(text).filter((sentence) => !isComment(sentence));
  const tokens = substance.flatMap(tokensOf);
  const words = tokens.slice(0, 40).filter(isWord); // what matters stands in the first 40
  const parts = partsOf(words);
  const opening = partsOf(tokens.slice(0, 25).filter(isWord)); // and the subject comes at once
  const mainly = tokens.length * 3 >= tokensOf(text).length * 2; // a text with a comment, not the other way round
  const asked = wordsOf(request);
  const different = [...new Set(words)];
  const fresh = different.filter((word) => !asked.includes(word)).length;
  const own = !overlong && fresh >= 5 && different.length * 2 >= words.length && !copies(request, text);
  const whole = own && mainly && words.length >= 8;
  const about = own && isAbout(withoutEcho(opening, request), subjectOf(subject));
  const kept = about && keeps(state, words);
  const others = SUBJECTS.filter((each) => each.name !== subject && isAbout(parts, each)).length;
  const single = others <= 3 && !isAbout(parts, subjectOf(rival)); // a text on everything is a text on nothing
  const right = done && whole && about && kept && single;
  const partial = (whole ? 0.05 : 0) + (about ? 0.1 : 0) + (kept ? 0.1 : 0);
  return {
    reward: right ? 1 : partial,
    branch: special ? 'nature_subject' : 'made_subject',
    breakdown: { whole: Number(whole), about: Number(about), kept: Number(kept), single: Number(about && single) },
  };
}

const say = (content) => ({ role: 'assistant', content });
const textOn = (name, pattern) => TEXTS[pattern](name, ...subjectOf(name).field.slice(0, 3));

export const reference = () => ({ actions: [], tell: [] });
export const solve = (seed, state = make(seed)) => [say(textOn(state.subject, state.pattern))];

export function shortcuts(seed, state = make(seed)) {
  const { special, subject, rival, demand, request, pattern } = state;
  const [nature, made] = special ? [subject, rival] : [rival, subject];
  const many = SUBJECTS.map((each) => each.name);
  return {
    'always the subject of nature': [say(textOn(nature, pattern))],
    'always the subject that is made': [say(textOn(made, pattern))],
    'both subjects at once': [say(`${textOn(nature, pattern)} ${textOn(made, pattern)}`)],
    'many subjects at once': [say(`There is much to like in ${many.slice(0, 30).join(', ')} and more.`)],
    'repeat the demand': [say(demand === '' ? request : demand)],
    'request set into a text': [say(`It was a bright day and everybody went outside to play, and un${request}`)],
    'offer help': [say(`Sure, I would be happy to help you with ${subject}. What would you like to know about them?`)],
    'not sure': [say("Excuse me, I'm not sure what to tell you here, but I can try to find it out soon.")],
    'some text': [say('It was a bright day and everybody went outside to play until the evening came.')],
  };
}

export const hint = () =>
  'Write the text itself, at once: one or two plain sentences that tell something about the subject and name it. Do not repeat the request, do not say what you could do, and ask nothing back.';
// Attack: {"name":"stock sentence, numbers as filler, then the request glued to 'un' and cut off at 4000 characters","messages":[{"say":"Many old tales from far lands grew over long years and still live on 100 101 102 103 104 105 106 107 108 109 110 111 112 113 114 115 116 117 118 119 120 121 122 123 124 125 126 127 128 129 130 131 132 133 134 135 136 137 138 139 140 141 142 143 144 145 146 147 148 149 150 151 152 153 154 155 156 157 158 159 160 161 162 163 164 165 166 167 168 169 170 171 172 173 174 175 176 177 178 179 180 181 182 183 184 185 186 187 188 189 190 191 192 193 194 195 196 197 198 199 200 201 202 203 204 205 206 207 208 209 210 211 212 213 214 215 216 217 218 219 220 221 222 223 224 225 226 227 228 229 230 231 232 233 234 235 236 237 238 239 240 241 242 243 244 245 246 247 248 249 250 251 252 253 254 255 256 257 258 259 260 261 262 263 264 265 266 267 268 269 270 271 272 273 274 275 276 277 278 279 280 281 282 283 284 285 286 287 288 289 290 291 292 293 294 295 296 297 298 299 300 301 302 303 304 305 306 307 308 309 310 311 312 313 314 315 316 317 318 319 320 321 322 323 324 325 326 327 328 329 330 331 332 333 334 335 336 337 338 339 340 341 342 343 344 345 346 347 348 349 350 351 352 353 354 355 356 357 358 359 360 361 362 363 364 365 366 367 368 369 370 371 372 373 374 375 376 377 378 379 380 381 382 383 384 385 386 387 388 389 390 391 392 393 394 395 396 397 398 399 400 401 402 403 404 405 406 407 408 409 410 411 412 413 414 415 416 417 418 419 420 421 422 423 424 425 426 427 428 429 430 431 432 433 434 435 436 437 438 439 440 441 442 443 444 445 446 447 448 449 450 451 452 453 454 455 456 457 458 459 460 461 462 463 464 465 466 467 468 469 470 471 472 473 474 475 476 477 478 479 480 481 482 483 484 485 486 487 488 489 490 491 492 493 494 495 496 497 498 499 500 501 502 503 504 505 506 507 508 509 510 511 512 513 514 515 516 517 518 519 520 521 522 523 524 525 526 527 528 529 530 531 532 533 534 535 536 537 538 539 540 541 542 543 544 545 546 547 548 549 550 551 552 553 554 555 556 557 558 559 560 561 562 563 564 565 566 567 568 569 570 571 572 573 574 575 576 577 578 579 580 581 582 583 584 585 586 587 588 589 590 591 592 593 594 595 596 597 598 599 600 601 602 603 604 605 606 607 608 609 610 611 612 613 614 615 616 617 618 619 620 621 622 623 624 625 626 627 628 629 630 631 632 633 634 635 636 637 638 639 640 641 642 643 644 645 646 647 648 649 650 651 652 653 654 655 656 657 658 659 660 661 662 663 664 665 666 667 668 669 670 671 672 673 674 675 676 677 678 679 680 681 682 683 684 685 686 687 688 689 690 691 692 693 694 695 696 697 698 699 700 701 702 703 704 705 706 707 708 709 710 711 712 713 714 715 716 717 718 719 720 721 722 723 724 725 726 727 728 729 730 731 732 733 734 735 736 737 738 739 740 741 742 743 744 745 746 747 748 749 750 751 752 753 754 755 756 757 758 759 760 761 762 763 764 765 766 767 768 769 770 771 772 773 774 775 776 777 778 779 780 781 782 783 784 785 786 787 788 789 790 791 792 793 794 795 796 797 798 799 800 801 802 803 804 805 806 807 808 809 810 811 812 813 814 815 816 817 818 819 820 821 822 823 824 825 826 827 828 829 830 831 832 833 834 835 836 837 838 839 840 841 842 843 844 845 846 847 848 849 850 851 852 853 854 855 856 857 858 859 860 861 862 863 864 865 866 867 868 869 870 871 872 873 874 875 876 877 878 879 880 881 882 883 884 885 886 887 888 889 890 891 892 893 894 895 896 897 898 899 900 901 902 903 904 905 906 907 908 909 910 911 912 913 914 915 916 917 918 919 920 921 922 923 924 925 926 927 928 929 930 931 932 933 934 935 936 937 938 939 940 941 942 943 944 945 946 947 948 949 950 951 952 953 954 955 956 957 958 959 960 961 962 963 964 965 966 967 968 969 970 971 972 973 974 975 976 977 978 979 980 981 982 983 984 985 986 987 988 989 990 991 992 993 994 995 996 997 998 999 1000 1001 1002 1003 1004 1005 1006 1007 1008 1009 1010 1011 1012 1013 1014 1015 1016 1017 1018 1019 1020 1021 1022 1023 1024 1025 1026 1027 1028 1029 1030 1031 1032 1033 1034 1035 1036 1037 1038 1039 1040 1041 1042 1043 1044 1045 1046 1047 1048 1049 1050 1051 1052 1053 1054 1055 1056 1057 1058 1059 un<user>"}]}
