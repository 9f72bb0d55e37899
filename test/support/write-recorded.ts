/**
 * Step 2 of the method over rollouts of a fixture, up to calibration: the synthesizer that asks a language model, through the real client,
 * with the endpoint of recorded replies, and the self-test that every module has to pass. Invariant: nothing but the fixture and the replies
 * decides what comes out.
 */
import type { Candidate } from '../../src/domain/capability';
import { kindOf } from '../../src/domain/kinds';
import { isFailure, reasonOf } from '../../src/domain/failures';
import { SELF_TEST_CPU_MS } from '../../src/sandbox/limits';
import { selfTest } from '../../src/sandbox/self-test';
import { synthesizers } from '../../src/synthesis';
import type { SynthesizedModule } from '../../src/synthesis/synthesizer';
import type { FixtureRollouts } from './fixture-rollouts';
import { withRecorded } from './analyse-recorded';
import type { RecordedRequest } from './recorded-replies';

interface WrittenEnvironment {
  name: string;
  /** Of each round: what the self-test found. The last one has no findings, or the synthesizer gave up, or the rounds were over. */
  rounds: { findings: string[] }[];
  /** Of the last round. */
  module?: SynthesizedModule;
  /** Why there is no further round. */
  gaveUp?: string;
}

interface RecordedSynthesis {
  environments: WrittenEnvironment[];
  requests: RecordedRequest[];
}

/** The method's. */
const MOST_ROUNDS = 5;

/** `record` as in analyseRecorded(). */
export async function writeRecorded(o: {
  set: string;
  record?: string;
  target: FixtureRollouts;
  /** All that the study found, and those of them that are written. */
  lacking: readonly Candidate[];
  only?: readonly string[] | undefined;
  options?: Record<string, unknown>;
  say?: (line: string) => void;
}): Promise<RecordedSynthesis> {
  const { set, record, target, lacking, only, options = {}, say = () => {} } = o;
  const candidates = lacking.filter(({ name }) => only?.includes(name) ?? true);
  return withRecorded({ set, record }, async ({ spec, work, requests }) => {
    const synthesizer = await kindOf(synthesizers, spec).open({ ...spec, ...options }, undefined);
    const input = { ...target, forbidden: [], seed: 1, ...work };
    const environments = await Promise.all(
      candidates.map(async (candidate): Promise<WrittenEnvironment> => {
        const written: WrittenEnvironment = { name: candidate.name, rounds: [] };
        const others = lacking
          .filter(({ name }) => name !== candidate.name)
          .map(({ name, definition }) => ({ name, definition }));
        while (written.rounds.length < MOST_ROUNDS) {
          const last = written.rounds.at(-1);
          const { module } = written;
          const round = written.rounds.length + 1;
          try {
            const previous = last && module && { source: module.source, findings: last.findings };
            written.module = previous
              ? await synthesizer.revise({ ...input, candidate, others, round, previous })
              : await synthesizer.write({ ...input, candidate, others });
          } catch (error) {
            if (!isFailure(error, 'CannotSynthesize')) throw error;
            written.gaveUp = reasonOf(error);
            break;
          }
          // Replies that are kept were tested within the limit; a busy machine counts more seconds for the same work.
          const cpuMs = (record === undefined ? 10 : 1) * SELF_TEST_CPU_MS;
          const { passed, findings } = await selfTest({ source: written.module.source, cpuMs });
          written.rounds.push({ findings });
          say(`${candidate.name}, round ${round}: ${passed ? 'passed' : findings.join(' | ')}`);
          if (passed) break;
        }
        return written;
      }),
    );
    return { environments, requests };
  });
}
