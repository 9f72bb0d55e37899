/** Checks of a module by its reference solutions. Each check returns its findings. */
import { createHash } from 'node:crypto';
import { isSuccess } from '../domain/rollout';
import { HELD_OUT_SEEDS, TRAINING_SEEDS } from '../domain/seeds';
import { answersIn, assistantMessages, jsonOf } from './conversation';
import type { ScriptedEpisode } from './module';
import { quoted } from './limits';

interface Solutions {
  maxSteps: number;
  solved: readonly ScriptedEpisode[];
  again(): Promise<ScriptedEpisode[]>;
  moreTraining(): Promise<ScriptedEpisode[]>;
}

export const solutionChecks: readonly ((solutions: Solutions) => Iterable<string> | Promise<Iterable<string>>)[] = [
  scoreFindings,
  determinismFindings,
  diversityFindings,
  repeatFindings,
  observationFindings,
];

/** Solutions score 1, end the episode and fit into its steps. */
function* scoreFindings({ solved, maxSteps }: Solutions): Generator<string> {
  const bad = failed(solved);
  const [first] = bad;
  if (first)
    yield (
      `solve: ${bad.length} of ${solved.length} reference solutions score below 1, e.g. seed ${first.seed} with ` +
      `${first.reward} (${quoted(JSON.stringify(first.breakdown))}): make solve and reward agree`
    );
  const open = solved.find(({ done }) => !done);
  if (open)
    yield `solve: seed ${open.seed} is not done after the last message: end the episode or add the closing message`;
  const long = solved.find(({ messages }) => assistantMessages(messages).length > maxSteps);
  if (long)
    yield (
      `describe: maxSteps ${maxSteps} is below the ${assistantMessages(long.messages).length} messages of the reference solution ` +
      `of seed ${long.seed}: raise maxSteps`
    );
}

export const failed = (solved: readonly ScriptedEpisode[]): ScriptedEpisode[] =>
  solved.filter((episode) => !isSuccess(episode));

async function determinismFindings({ solved, again }: Solutions): Promise<string[]> {
  const repeated = await again();
  const other = repeated.find((episode, n) => JSON.stringify(episode) !== JSON.stringify(solved[n]));
  return other ? [`seed ${other.seed} does not give the same bytes twice: draw everything from the seed`] : [];
}

const DISTINCT = 0.8;
/** Share of held-out instances that may occur in training: they must show what an adapter can do beyond what it has memorised. */
const REPEATED = 0.1;

/** Instances are equal if the conversations of their solutions are: a number in the state that is never shown makes no difference. */
const instanceHash = ({ messages }: ScriptedEpisode): string =>
  createHash('sha256').update(JSON.stringify(messages)).digest('hex');

function* diversityFindings({ solved }: Solutions): Generator<string> {
  const distinct = new Set(solved.map(instanceHash)).size;
  if (distinct < DISTINCT * solved.length)
    yield (
      `make: ${distinct} distinct instances of ${solved.length}, by what is said in their solutions: draw more of the ` +
      `instance from the seed (80% must differ)`
    );
}

/** Reports held-out instances that also occur in training, as most do in a module with a few hundred instances. */
async function repeatFindings({ solved, moreTraining }: Solutions): Promise<string[]> {
  const heldOut = solved.filter(({ seed }) => seed >= HELD_OUT_SEEDS);
  const own = solved.filter(({ seed }) => seed >= TRAINING_SEEDS && seed < HELD_OUT_SEEDS);
  const training = [...own, ...(await moreTraining())];
  const trained = new Map(training.map((episode) => [instanceHash(episode), episode.seed]));
  const repeated = heldOut.filter((episode) => trained.has(instanceHash(episode)));
  const [first] = repeated;
  if (!first || repeated.length <= REPEATED * heldOut.length) return [];
  return [
    `make: ${repeated.length} of ${heldOut.length} held-out seeds give an instance of one of ${training.length} training seeds, e.g. seed ` +
      `${first.seed} that of seed ${trained.get(instanceHash(first))}: draw more of the instance from the seed (10% may be alike)`,
  ];
}

/** Begins as JSON does, and as no Python text and no prose does. */
const AS_JSON = /^\s*\[?\s*\{\s*"/;

function* observationFindings({ solved }: Solutions): Generator<string> {
  for (const { seed, messages } of solved)
    for (const { tool, content } of answersIn(messages))
      if (AS_JSON.test(content) && !jsonOf(content)) {
        const what = `step: seed ${seed}: "${quoted(content)}" of ${quoted(tool, 100)}`;
        return yield `${what} is broken JSON: write it with JSON.stringify`;
      }
}
