/**
 * The language model that a learner may ask. Invariant: it is asked through the ledger, so that every reply is paid for once, kept and counted;
 * the learner has neither its key nor its address.
 */
import { Context } from '@temporalio/activity';
import { digest, seedOf } from '../artifacts/hash';
import type { ArtifactStore } from '../artifacts/store';
import { isFailure } from '../domain/failures';
import { answerOf } from '../language-model/answer';
import { CHARACTERS_A_TOKEN } from '../language-model/costs';
import { openLedger } from '../language-model/ledger';
import { openLanguageModel } from '../language-model/model';
import { openPrompts } from '../language-model/prompts';
import type { Services } from './learning';
import type { SearchPromptInput } from './types';

/** One that gives no usable answer to so many questions in a row will not give one to the next. */
const UNUSABLE_IN_A_ROW = 4;
/** Of what a question may have, in characters: tokens are estimated. */
const ROOM = 0.8;

interface Reflection {
  /** What determines its replies, for keys. */
  id: string;
  /** The most that a question may have. */
  characters: number;
  reply: Services['reply'];
  /** Whether a question was left unasked for want of budget. */
  spent(): boolean;
}

type ReflectionInput = Pick<SearchPromptInput, 'name' | 'reflection' | 'campaign' | 'budget' | 'searchSeed'>;

export function openReflection(o: ReflectionInput & { store: ArtifactStore }): Reflection {
  const { name, reflection, campaign, budget, searchSeed, store } = o;
  const { model: spec, field } = reflection;
  const model = openLanguageModel(field, spec);
  const prompts = openPrompts({ folder: spec.prompts });
  const { repairs, contextTokens, maxTokens } = spec;
  let unusable = 0;
  let spent = false;
  return {
    id: digest([model.id, prompts.digest(['repair'])]),
    characters: Math.floor(ROOM * CHARACTERS_A_TOKEN * Math.max(0, contextTokens - maxTokens)),
    async reply({ messages, again }, heard) {
      const asking = {
        ledger: openLedger({ store, campaign, budget, heard }),
        step: `reflection: ${name}`,
        signal: Context.current().cancellationSignal,
        onText: heard,
      };
      const read = (text: string) => ({ value: text });
      try {
        const question = { model, messages, seed: seedOf(`${searchSeed}/${again}`), read, repairs, asking, prompts };
        const text = await answerOf(question);
        unusable = 0;
        return { text };
      } catch (error) {
        if (isFailure(error, 'BudgetSpent')) {
          spent = true;
          return 'spent';
        }
        if (!isFailure(error, 'AnswerInvalid') || ++unusable >= UNUSABLE_IN_A_ROW) throw error;
        return { problem: error.message };
      }
    },
    spent: () => spent,
  };
}
