/** Searches for a prompt with GEPA (arXiv 2507.19457); no weights change. */
import { armName } from '../domain/campaign';
import { languageModelOf, languageModelSchema } from '../domain/endpoints';
import { OutsideFailure } from '../domain/failures';
import { describeKind, type KindSpec } from '../domain/kinds';
import { promptSearchSchema } from '../domain/policies';
import type { ArmKind } from './arm';

/** Number of best prompts that `campaign check` expects of a search. */
const EXPECTED_BEST = 6;

const kind = describeKind({
  kind: 'gepa',
  version: '1',
  options: {
    ...promptSearchSchema.shape,
    reflection: languageModelSchema.optional().describe("Model that writes prompts; default: the analyst's."),
  },
});

/** A campaign that began with an older version may hold fields that a language model no longer has. */
const read = ({ reflection, ...spec }: KindSpec) =>
  kind.read({ ...spec, ...(reflection !== undefined && { reflection: languageModelOf(reflection as object) }) });

export const gepa = {
  ...kind,
  read,
  planned: (spec, { budget }) => ({ training: budget, heldOut: EXPECTED_BEST, reflection: read(spec) }),
  languageModel(spec, { analyst, parts }) {
    const field = `arms.${armName(spec)}.reflection`;
    const { reflection } = read(spec);
    if (reflection) return { field, model: reflection };
    if (parts?.analystModel) return { field: 'analyst', model: parts.analystModel };
    throw new OutsideFailure(
      'BadInput',
      `${field} is missing, and analyst.kind is ${analyst.kind}, which asks no language model: set reflection ` +
        `{ url, model, apiKeyEnv } to the model that is to write prompts, or an analyst that asks one`,
    );
  },
} satisfies ArmKind;
