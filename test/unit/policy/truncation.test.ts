/** A server that samples from a part of the distribution is refused, one that samples from all of it is not. */
import { seededRandom } from '../../../src/domain/seeds';
import { checkSampling, evidenceOfCut, type Drawn } from '../../../src/policy/server-proof';

/** Of `size` tokens by 1/rank to a power: 1 is about what a model has between two words, 3 what it has where it is sure. */
const zipf = (power: number, size = 400): number[] => {
  const weights = Array.from({ length: size }, (_, n) => (n + 1) ** -power);
  const total = weights.reduce((sum, one) => sum + one);
  return weights.map((one) => one / total);
};
const FLAT = [1.1, 2, 2].map((power) => zipf(power));
const SURE = [1.5, 3, 3, 3, 3].map((power) => zipf(power));

type Keep = (probability: number, rank: number, before: number, best: number) => boolean;
const all: Keep = () => true;

/** Tokens by inverse transform from what is kept; told as vLLM does it: the sampled one, then the likeliest, 20 at most. */
function draw(o: { random: () => number; probabilities: readonly number[]; keep: Keep }): Drawn {
  const { random, probabilities, keep } = o;
  let before = 0;
  const kept = probabilities.map((p, n) => {
    const is = keep(p, n + 1, before, probabilities[0]!);
    before += p;
    return is ? p : 0;
  });
  let left = random() * kept.reduce((sum, one) => sum + one);
  const sampled = kept.findIndex((p) => (left -= p) < 0);
  const told = (n: number) => ({ token: `t${n}`, logprob: Math.log(probabilities[n]!) });
  const likeliest = [...new Set([sampled, ...probabilities.keys()])].slice(0, 20);
  return { ...told(sampled), likeliest: likeliest.map(told) };
}

function serving(o: { keep: Keep; from: readonly number[][]; seed?: number }) {
  const random = seededRandom(o.seed ?? 1);
  let asked = 0;
  const complete = ({ max_tokens: tokens }: { max_tokens?: number | null }) => {
    asked += 1;
    const content = Array.from({ length: tokens ?? 1 }, (_, n) => {
      const { likeliest, ...own } = draw({ ...o, random, probabilities: o.from[n % o.from.length]! });
      return { ...own, top_logprobs: likeliest };
    });
    return Promise.resolve({
      choices: [
        { message: { content: 'x' }, finish_reason: 'length', token_ids: content.map(() => 1), logprobs: { content } },
      ],
      prompt_token_ids: [1],
    });
  };
  return {
    check: () => checkSampling({ url: 'http://gpu:8000', server: { complete }, model: 'base' }),
    asked: () => asked,
  };
}

test.each<[string, Keep]>([
  ['top_k 20', (_, rank) => rank <= 20],
  ['top_k 50', (_, rank) => rank <= 50],
  ['top_k 1', (_, rank) => rank <= 1],
  ['top_p 0.8', (_, _rank, before) => before < 0.8],
  ['top_p 0.9', (_, _rank, before) => before < 0.9],
  ['min_p 0.05', (p, _, _before, best) => p >= 0.05 * best],
])('%s is seen, and told with what mends it', async (_, keep) => {
  for (const from of [FLAT, SURE]) {
    await expect(serving({ keep, from }).check()).rejects.toMatchObject({
      type: 'PolicyServerWrong',
      retryable: false,
      message: expect.stringMatching(
        /^policy server http:\/\/gpu:8000: it does not sample from the distribution .* of \d+ tokens \d+ are beyond .* --generation-config vllm/,
      ),
    });
  }
});

test('who samples from all of it is asked until a cut would have been seen, and not refused', async () => {
  for (const from of [FLAT, SURE])
    for (let seed = 1; seed <= 10; seed++) {
      const { check, asked } = serving({ keep: all, from, seed });
      await check();
      expect(asked()).toBe(from === FLAT ? 32 : 96);
    }
});

test('as a ratio of likelihoods, the evidence is 1 in the mean where nothing is cut off', () => {
  const random = seededRandom(5);
  const samples = Array.from({ length: 4000 }, () =>
    Math.exp(evidenceOfCut(Array.from({ length: 3 }, () => draw({ random, probabilities: zipf(1.5), keep: all })))),
  );
  const mean = samples.reduce((sum, one) => sum + one) / samples.length;
  expect(mean).toBeGreaterThan(0.95);
  expect(mean).toBeLessThan(1.05);
});

test.each([
  [
    'token ids',
    { content: [{ token: 'a', logprob: -1, top_logprobs: [{ token: 'a', logprob: -1 }] }] },
    /return_token_ids/,
  ],
  ['the likeliest tokens', { content: [] }, /it must honour top_logprobs/],
])('a server that does not tell %s is refused', async (_, logprobs, said) => {
  const choice = {
    message: { content: '' },
    finish_reason: 'stop',
    logprobs,
    ...(logprobs.content.length === 0 && { token_ids: [] }),
  };
  const complete = () => Promise.resolve({ choices: [choice], prompt_token_ids: [1] });
  await expect(checkSampling({ url: 'http://gpu', server: { complete }, model: 'm' })).rejects.toMatchObject({
    type: 'PolicyServerWrong',
    message: expect.stringMatching(said),
  });
});
