/**
 * A module of the generators with a reward that means nothing: a hash of the state. Invariant: all else is as it was, and equal states have
 * equal rewards, so that the only thing that is gone is what the reward says of the capability.
 */

/** Of final states, this share has reward 1: within the bands of calibration. The others have up to `REST`, as partial credit has. */
const SUCCESS = 0.4;
const REST = 0.25;

/** What the generators end a module's code with; what follows is a comment. */
const EXPORTS = /^export const \{([^}]*)\breward\b([^}]*)\} = environmentOf\(params\);$/m;
const RATIONALE = 'The reward is a hash of the final state: a null test.';

/** Throws where the text is no module of the generators. */
export function withShuffledReward(source: string): string {
  if (!EXPORTS.test(source))
    throw new Error('the module exports no reward of environmentOf(params): give one of the generators');
  const changed = source.replace(EXPORTS, 'const {$1reward: rewardOfCapability$2} = environmentOf(params);');
  const names = [...(EXPORTS.exec(source)?.slice(1) ?? [])].flatMap((part) => part.match(/\w+/g) ?? []);
  return `// Rationale: ${RATIONALE}
${changed.trimEnd()}
export { ${names.join(', ')} };
function hashed(text, salt) {
  let hash = 2166136261 ^ salt;
  for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), 16777619);
  hash = Math.imul(hash ^ (hash >>> 15), 2246822507);
  return ((hash ^ (hash >>> 13)) >>> 0) / 4294967296;
}
export function reward(state) {
  const text = JSON.stringify(state);
  const value = hashed(text, 1) < ${SUCCESS} ? 1 : ${REST} * hashed(text, 2);
  return { ...rewardOfCapability(state), reward: value };
}
`;
}

/** The module as the activity `synthesize` stores it: with the rationale that the text begins with at its end. */
export const asStored = (source: string): string => `${source}\n// Rationale: ${RATIONALE}\n`;
