/**
 * The analyst that `campaign analyse` asks: its fields from --config, with those of the command line over them. Invariant: what comes out is
 * what a campaign file's `analyst` would be; a problem is named by the flag or the field that mends it.
 */
import { dirname, resolve } from 'node:path';
import { z } from 'zod';
import type { AnalystKind } from '../../analyst/analyst';
import type { LanguageModelSpec } from '../../domain/endpoints';
import { type KindSpec, specSchemaOf } from '../../domain/kinds';
import { changePaths } from '../campaign-file';
import { parseFields, readInput } from '../input';
import { UserError } from '../errors';

export interface SpecOptions {
  config?: string;
  url?: string;
  model?: string;
  apiKeyEnv?: string;
  prompts?: string;
  priceInput?: number;
  priceOutput?: number;
}

export type AnalystSpec = KindSpec & LanguageModelSpec & { messageChars: number; argumentChars: number };

type Fields = Record<string, unknown>;

/** More than a campaign shows: the conversations are few, and a label hangs on the step where a failure begins. */
const SHOWN: Fields = { messageChars: 1000, argumentChars: 400 };

const flags = {
  url: '--url URL (of any OpenAI-compatible endpoint, such as http://127.0.0.1:8000/v1)',
  model: '--model NAME',
};

/** @throws UserError */
export function analystSpec({ config, ...options }: SpecOptions, kind: AnalystKind): AnalystSpec {
  const fields: Fields = {
    kind: kind.kind,
    ...SHOWN,
    ...(config !== undefined && fromFile(config, kind)),
    ...fromFlags(options),
  };
  for (const [field, flag] of Object.entries(flags))
    if (fields[field] === undefined)
      throw new UserError(`no ${field} of a language model; give ${flag}, or ${field} in a file with --config`);
  const { data, problems } = parseFields(specSchemaOf([kind]), fields);
  if (problems) {
    const where = config === undefined ? '' : `${config}: `;
    const [first = `${where}no fields of an analyst`, ...others] = problems.map(({ text }) => `${where}${text}`);
    throw new UserError(first, others);
  }
  // The kind's options hold those of every language model.
  return data as unknown as AnalystSpec;
}

function fromFlags({ url, model, apiKeyEnv, prompts, priceInput: input, priceOutput: output }: SpecOptions): Fields {
  if ((input === undefined) !== (output === undefined))
    throw new UserError(
      `--price-${input === undefined ? 'input' : 'output'} is missing; give both prices, in dollars for a million tokens`,
    );
  const fields = {
    url,
    model,
    apiKeyEnv,
    prompts: prompts && resolve(prompts),
    price: input === undefined ? undefined : { input, output },
  };
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined));
}

/** A file with the analyst's fields, or a campaign file, of which `analyst` counts. Its paths are relative to it. */
function fromFile(file: string, kind: AnalystKind): Fields {
  const fix = "name a YAML file with the analyst's fields (url, model, ...), or a campaign file";
  const schema = z.looseObject({ analyst: z.record(z.string(), z.unknown()).optional() });
  const value = readInput({ file, named: `--config ${file}`, schema, fix });
  const fields: Fields = value.analyst ?? value;
  const named = fields['kind'] ?? kind.kind;
  if (named !== kind.kind)
    throw new UserError(
      `${file}: kind is ${JSON.stringify(named)}; this command asks a language model: \`kind: ${kind.kind}\``,
    );
  return changePaths({ ...fields, kind: kind.kind }, kind, (path) => resolve(dirname(file), path));
}
