/**
 * Conversations that no request can hold. Invariant: they are left out before anything is asked, and named; the analyst finds no other that is
 * too long.
 */
import { compactOne } from '../../domain/transcript';
import type { LanguageModelSpec } from '../../domain/endpoints';
import type { SelectionRule } from '../../domain/campaign';
import { tokensOf } from '../../language-model/costs';
import { wholeNumber } from '../../report/format';
import { counted, type Loaded } from './conversations';
import { cutting, fixedTokens } from './estimate';

/** The longest definition that is taken, with its name, in tokens. */
const LONGEST_DEFINITION = 220;
/** What a request's length is known to, in tokens. */
const MARGIN = 200;
/** The analyst refuses a context with less room. */
const LEAST_ROOM = 1000;

const SHOWN = 10;

/** @throws UserError where the others give no contrast. */
export function withoutTooLong(o: {
  loaded: Loaded;
  spec: LanguageModelSpec;
  rule: Pick<SelectionRule, 'maxCandidates'>;
}): Loaded {
  const { loaded, spec, rule } = o;
  const { messageChars, argumentChars } = cutting.parse(spec);
  const lengths = { message: messageChars, arguments: argumentChars };
  const fixed = fixedTokens({ description: loaded.description, spec, rule });
  const most = Math.max(fixed.discovery, fixed.labels + rule.maxCandidates * LONGEST_DEFINITION) + MARGIN;
  const room = Math.max(LEAST_ROOM, Math.floor(0.9 * (spec.contextTokens - spec.maxTokens)) - most);
  const isTooLong = (rollout: Loaded['rollouts'][number]) =>
    tokensOf(compactOne({ rollout, id: 'r100000', lengths }).length) > room;
  const left = loaded.rollouts.filter(isTooLong);
  if (left.length === 0) return loaded;
  const names = left.slice(0, SHOWN).map(({ key }) => loaded.ids.get(key) ?? key);
  const more = left.length > SHOWN ? ` and ${left.length - SHOWN} more` : '';
  const note =
    `left out, too long for a request with room for ${wholeNumber(room)} tokens: ${names.join(', ')}${more}; ` +
    'raise contextTokens with --config, or lower maxTokens, messageChars or argumentChars';
  const rollouts = loaded.rollouts.filter((rollout) => !left.includes(rollout));
  return { ...loaded, rollouts, counts: counted(rollouts, note), notes: [...loaded.notes, note] };
}
