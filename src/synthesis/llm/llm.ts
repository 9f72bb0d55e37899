/**
 * Synthesizer `llm`: a language model writes the module, and revises it by the findings. Its identity contains all that
 * its answers depend on, but not the model's address, the payer or the rate of requests.
 */
import { z } from 'zod';
import { digest } from '../../store/hash';
import { languageModelFields, languageModelOf } from '../../domain/endpoints';
import { badInputIn, isFailure, reasonOf } from '../../domain/failures';
import { defineKind, type Identity } from '../../domain/kinds';
import { answerOf, promptDigest } from '../../llm/answer';
import { openLanguageModel, type Asking, type ChatMessage } from '../../llm/model';
import { attacksIn, MOST_ATTACKS, type Attack } from '../../sandbox/attacks';
import { showable } from '../../sandbox/leakage';
import { OFFERED_TOOLS } from '../../sandbox/limits';
import {
  cannotSynthesize,
  type SynthesizedModule,
  type Synthesizer,
  type SynthesizerKind,
  type WriteInput,
} from '../synthesizer';
import { examplesText, questionOf, revisionOf, type Room } from './question';
import { type AttackOptions, attacksOn, readModule, withAttacks } from './read-module';

type Means = Room & AttackOptions;

const kind = defineKind({
  kind: 'llm',
  version: '1',
  options: {
    ...languageModelFields,
    attacks: z.number().int().min(0).max(5).default(5).describe('Attacks on each module.'),
  },
  open({ attacks, ...spec }, identity) {
    const { contextTokens, maxTokens, repairs } = spec;
    const model = openLanguageModel('synthesizer', spec);
    return synthesizerWith({ model, contextTokens, maxTokens, repairs, attacks }, identity);
  },
});
export const llm: SynthesizerKind = { ...kind, languageModel: languageModelOf, planned: kind.read };

export function synthesizerWith(means: Means, { kind, version }: Pick<Identity, 'kind' | 'version'>): Synthesizer {
  const { model, contextTokens, attacks } = means;
  const options = {
    model: model.id,
    prompts: promptDigest(['environment', 'environment-texts', 'environment-revision', 'attack', 'repair']),
    examples: digest(examplesText()),
    attacks,
    // A tight context limits what is shown.
    contextTokens,
  };
  return {
    identity: { kind, version, options },

    unsuited(description) {
      const candidate = { name: '', definition: '', examples: [] };
      const none = { candidate, others: [], description, forbidden: [] };
      const problem = badInputIn(() => questionOf(none, { shown: [], room: means, more: [] }));
      const { length } = description.tools;
      if (problem !== undefined || length === 0 || length >= OFFERED_TOOLS.fewest) return problem;
      return `the target has ${length} tools, and an environment offers ${OFFERED_TOOLS.fewest} or more of them`;
    },

    write: (input) => moduleFor(input, { means, more: [], known: [] }),
    revise: (input) =>
      moduleFor(input, { means, more: revisionOf(input), known: attacksIn(input.previous.source).attacks }),
  };
}

/** `known`: attacks on the module before. They are played against this one too. */
async function moduleFor(
  input: WriteInput,
  { means, more, known }: { means: Means; more: readonly ChatMessage[]; known: readonly Attack[] },
): Promise<SynthesizedModule> {
  const { candidate, ledger, progress, signal, seed } = input;
  const { model, repairs } = means;
  const asking: Asking = { ledger, signal, step: `environment: ${candidate.name}` };
  const shown = await showable(input.rollouts, input.forbidden);
  const { messages, target } = questionOf(input, { shown, room: means, more });
  const read = async (text: string) => {
    const answer = await readModule(text, target);
    progress(0, 2);
    return answer;
  };
  const written = await answerOf({ model, messages, seed, read, repairs, asking }).catch((error: unknown) => {
    if (isFailure(error, 'AnswerInvalid')) throw cannotSynthesize(reasonOf(error));
    throw error;
  });
  progress(1, 2);
  // Known attacks are never dropped; new ones are requested only below the limit.
  const most = Math.min(means.attacks, Math.max(0, MOST_ATTACKS - known.length));
  const proposed = await attacksOn({ source: written.source, candidate }, { ...means, attacks: most, seed, asking });
  progress(2, 2);
  const attacks = new Map([...known, ...proposed].map((attack) => [JSON.stringify(attack.messages), attack]));
  return { ...written, source: withAttacks(written.source, [...attacks.values()]) };
}
