/**
 * Whether a policy server serves the base model that a policy is of, and samples from all of the distribution whose log-probs it reports: vLLM takes
 * what a request does not set from the model's generation_config.json (top_k 20), proxies leave out what they do not know, and log-probs show neither.
 * The server is asked again wherever another one may have taken its place; one that samples from all of it is refused once in a million.
 */
import type { ArtifactStore } from '../artifacts/store';
import { isFailure, OutsideFailure } from '../domain/failures';
import { limited } from '../domain/concurrency';
import { type Fingerprint, hashOf, modelOf, readFingerprint } from './base-model';
import type { PolicyServer } from './server';
import { likeliestBody, type LikelyToken, parseLikeliest, parseScores, parseTurn, scoreBody } from './wire';

/**
 * Of the log-probs of a fingerprint's ids, in nats and in the median, which few experts that rounding chooses otherwise don't move. On a model
 * of 135 M parameters bfloat16 is off by 0.05, rows of int8 by 0.08, 1% of noise on all weights by 0.15, 3% by 0.4; random weights by several.
 */
const FARTHEST = 0.25;

interface ServedBase {
  url: string;
  server: PolicyServer;
  store: ArtifactStore;
  /** What the operator says that the server serves, where it does not say so itself. */
  baseId?: string | undefined;
  /** The base model's, where the store has none. */
  fingerprint?: Fingerprint | undefined;
}

/** Throws WrongBaseModel unless the server serves this base, PolicyServerWrong if it samples otherwise than it is asked to. Costs nothing as long as the server stays the one that was asked. */
export function createProof(o: ServedBase): (base: string) => Promise<void> {
  const { url, server, store, baseId } = o;
  const proofs = new Map<string, { losses: number; proof: Promise<void> }>();
  /** How often it had been away when it was seen to sample as it should: that costs some thousand tokens. */
  let sampledAt: number | undefined;

  async function prove(wanted: string): Promise<void> {
    const served = await server.models();
    await proveBase(wanted, served);
    const absences = server.absences();
    if (isId(served.root) || sampledAt === absences) return;
    await checkSampling({ url, server, model: served.base });
    sampledAt = absences;
  }

  async function proveBase(wanted: string, { base, root }: Awaited<ReturnType<PolicyServer['models']>>): Promise<void> {
    const model = modelOf(wanted);
    const wrong = (serves: string) => {
      const fix = 'start the server with that model, or the worker with the POLICY_SERVER_URL of a server that has it';
      const problem = `policy server ${url} serves ${serves}, and the campaign wants ${model}: ${fix}`;
      return new OutsideFailure('WrongBaseModel', problem);
    };
    const told = isId(root) ? root : baseId;
    if (told !== undefined) {
      if (hashOf(told) !== hashOf(model)) throw wrong(isId(root) ? told : `${told} (CAMPAIGN_BASE_ID)`);
      return;
    }
    const fingerprint = (await readFingerprint(store, model)) ?? o.fingerprint;
    if (!fingerprint)
      throw wrong(
        `${base}, does not say which model that is, and nothing is known to hold it against (or set CAMPAIGN_BASE_ID)`,
      );
    const { ids, logprobs } = fingerprint;
    const another = (how: string) => wrong(`another model as ${base} (${how})`);
    const answer = await server.score(scoreBody({ model: base, ids })).catch((error: unknown) => {
      // Of a smaller vocabulary.
      throw isFailure(error, 'PolicyRequestRejected') ? another(error.message) : error;
    });
    const scores = parseScores(answer, ids);
    const far = median(scores.map((score, n) => Math.abs(score - logprobs[n]!)));
    if (!(far <= FARTHEST))
      throw another(`log-probs of ${scores.length} tokens are off by ${far.toFixed(2)} nats in the median`);
  }

  return (base) => {
    const losses = server.losses();
    const known = proofs.get(base);
    if (known?.losses === losses) return limited(known.proof);
    const proof = prove(base);
    const made = { losses, proof };
    proof.catch(() => proofs.get(base) === made && proofs.delete(base));
    proofs.set(base, made);
    return proof;
  };
}

/** The embedded server says it, and samples as it is tested to; vLLM says a path or a name of its own. */
const isId = (root: string | undefined): root is string => root !== undefined && /@[0-9a-f]{12}$/.test(root);

const median = (values: readonly number[]): number => [...values].sort((a, b) => a - b)[values.length >> 1] ?? NaN;

/** Where a model has hundreds of tokens to choose from. */
const PROMPT = 'Write random letters and digits, as a password generator would, and nothing else.';
const REQUESTS = 32;
const TOKENS = 32;
const MOST_ROUNDS = 3;

/** In nats: a million to one. */
const REFUSED = Math.log(1e6);
/**
 * What the evidence would come to of a server that has nothing but the likeliest: so much that half of it would be seen, too. Less is not looked for beyond
 * MOST_ROUNDS: a model that has next to nothing else to say here loses nothing where it is cut off.
 */
const ENOUGH = 10 * REFUSED;

/** One sampled token, and the likeliest ones where it was sampled: itself may be among them. */
export type Drawn = LikelyToken & { likeliest: readonly LikelyToken[] };

/** Of 20 a server tells 19 and the sampled one. */
const TOLD = 19;
/** What may be wrong: all but so many tokens (top_k), or what comes after so much of the probability (top_p), is not there, or half of it. */
const LAST: ((rest: readonly number[]) => number)[] = [
  ...[1, 5, 10, TOLD].map((best) => () => best),
  ...[0.8, 0.9, 0.95].map((share) => (rest: readonly number[]) => rest.findIndex((left) => left <= 1 - share)),
];
const CUTS = LAST.flatMap((last) => [0, 0.5].map((left) => ({ last, left })));

/**
 * How much likelier the tokens are if the server cuts off than if it does not, in nats: the mean of the likelihood ratios over all cuts. Whoever samples
 * from all of the distribution comes to x at any time with a probability of at most exp(-x) (Ville).
 */
export function evidenceOfCut(drawn: readonly Drawn[]): number {
  const seen = drawn.map(standing);
  const logs = CUTS.map(({ last, left }) =>
    seen.reduce((sum, { rank, rest }) => {
      const best = last(rest);
      if (best < 0 || best > TOLD) return sum; // not told
      const beyond = rest[best]!;
      return sum + (rank > best ? Math.log(left) : Math.log1p(((1 - left) * beyond) / (1 - beyond)));
    }, 0),
  );
  const most = Math.max(...logs);
  return most + Math.log(logs.reduce((sum, log) => sum + Math.exp(log - most), 0) / CUTS.length);
}

/**
 * `rank`: of the sampled token, the last of those that are as likely, so that no more of the probability is within the best than is said. `rest[n]`: the
 * probability of all but the n likeliest tokens.
 */
function standing({ token, logprob, likeliest }: Drawn): { rank: number; rest: number[] } {
  // Tokens that are no whole characters are told alike.
  const own = likeliest.findIndex((other) => other.token === token && Math.abs(other.logprob - logprob) < 1e-3);
  const others = likeliest.flatMap((other, n) => (n === own ? [] : [other.logprob]));
  const rest = [1];
  for (const one of [logprob, ...others].sort((a, b) => b - a)) rest.push(Math.max(0, rest.at(-1)! - Math.exp(one)));
  return { rank: 1 + others.filter((other) => other >= logprob).length, rest };
}

/** Throws PolicyServerWrong where it cuts off, or does not tell what training needs. `model`: the name of its base. */
export async function checkSampling(o: {
  url: string;
  server: Pick<PolicyServer, 'complete'>;
  model: string;
}): Promise<void> {
  const { url, server, model } = o;
  const wrong = (problem: string, cause?: unknown) =>
    new OutsideFailure('PolicyServerWrong', `policy server ${url}: ${problem}`, cause);
  const drawn: Drawn[] = [];
  for (let round = 0; round < MOST_ROUNDS; round++) {
    const seeds = Array.from({ length: REQUESTS }, (_, n) => round * REQUESTS + n);
    const answers = await Promise.all(seeds.map(draw)).catch((error: unknown) => {
      throw isFailure(error, 'PolicyAnswerInvalid', 'PolicyRequestRejected') ? wrong(error.message, error) : error;
    });
    drawn.push(...answers.flat());
    if (evidenceOfCut(drawn) > REFUSED) throw wrong(cutOff(drawn));
    const expected = drawn.reduce((sum, one) => sum - Math.log1p(-standing(one).rest[TOLD]!), 0);
    if (expected > ENOUGH) return;
  }

  async function draw(seed: number): Promise<Drawn[]> {
    const messages = [{ role: 'user' as const, content: PROMPT }];
    const sampling = { temperature: 1, topP: 1, maxTokens: TOKENS };
    const answer = await server.complete(likeliestBody({ model, messages, sampling, seed }));
    parseTurn(answer); // what rollouts read of it
    return parseLikeliest(answer);
  }
}

function cutOff(drawn: readonly Drawn[]): string {
  const seen = drawn.map(standing);
  const expected = seen.reduce((sum, { rest }) => sum + rest[TOLD]!, 0);
  return (
    `it does not sample from the distribution whose log-probs it tells: of ${drawn.length} tokens ${seen.filter(({ rank }) => rank > TOLD).length} are ` +
    `beyond the ${TOLD} likeliest, where by the log-probs ${expected.toFixed(0)} should be; it ignores top_k, min_p or a penalty of the request: start ` +
    'vLLM with --generation-config vllm, and let nothing between change requests'
  );
}
