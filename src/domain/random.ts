/**
 * Seeded randomness. Invariant: the same seed parts give the same numbers on every machine and in the workflow sandbox (no node
 * module, no clock). Not for secrets.
 */

/** FNV-1a over UTF-16 code units: 32 bits. */
function hash(text: string, basis: number): number {
  let h = basis;
  for (let i = 0; i < text.length; i++) h = Math.imul(h ^ text.charCodeAt(i), 0x01000193);
  return h >>> 0;
}

/** A generator of numbers in [0, 1) (sfc32), a function of `parts` alone: `seededRandom('labels', 7, 2)`. */
export function seededRandom(...parts: (string | number)[]): () => number {
  const text = JSON.stringify(parts);
  let [a, b, c, counter] = [hash(text, 0x811c9dc5), hash(text, 0x9e3779b9), hash(text, 0x85ebca6b), 1];
  const next = () => {
    const t = (((a + b) | 0) + counter) | 0;
    counter = (counter + 1) | 0;
    a = b ^ (b >>> 9);
    b = (c + (c << 3)) | 0;
    c = (((c << 21) | (c >>> 11)) + t) | 0;
    return (t >>> 0) / 4294967296;
  };
  // The first outputs still show the structure of the seed.
  for (let i = 0; i < 12; i++) next();
  return next;
}
