/**
 * The analyst that asks a language model for candidates and labels of the trajectories of any target. Invariant: its identity contains all that its
 * answers depend on, but not the model's address, the payer or the rate of requests.
 */
import { z } from 'zod';
import { languageModelFields, languageModelOf } from '../../domain/endpoints';
import { badInputIn } from '../../domain/failures';
import { defineKind, type Identity } from '../../domain/kinds';
import { LENGTHS } from '../../domain/transcript';
import { openLanguageModel } from '../../llm/model';
import { promptDigest } from '../../llm/answer';
import type { Analyst, AnalystKind } from '../analyst';
import { discover, label } from './discovery';
import { type Config, discoveryRequest, roomFor } from './requests';

const count = z.number().int().positive();

const kind = defineKind({
  kind: 'llm',
  // 2: texts for people name trajectories by task and attempt.
  version: '2',
  options: {
    ...languageModelFields,
    chunkTokens: count.default(60_000).describe('Tokens of rollouts per request.'),
    labelsPerChunk: count.default(40).describe('Rollouts labeled per request.'),
    messageChars: count.default(LENGTHS.message).describe('Characters per message.'),
    argumentChars: count.default(LENGTHS.arguments).describe("Characters of a call's arguments."),
  },
  open({ chunkTokens, labelsPerChunk, messageChars, argumentChars, ...spec }, identity) {
    const { contextTokens, maxTokens, concurrency, repairs } = spec;
    const model = openLanguageModel('analyst', spec);
    const lengths = { message: messageChars, arguments: argumentChars };
    const limits = { contextTokens, maxTokens, concurrency, chunkTokens, labelsPerChunk, lengths, repairs };
    return analystWith({ model, ...limits }, identity);
  },
});
export const llm: AnalystKind = { ...kind, languageModel: languageModelOf, planned: kind.read };

export function analystWith(config: Config, { kind, version }: Pick<Identity, 'kind' | 'version'>): Analyst {
  const { model, chunkTokens, labelsPerChunk, lengths, contextTokens } = config;
  const options = {
    model: model.id,
    prompts: promptDigest(['discover', 'merge', 'label', 'repair']),
    chunkTokens,
    labelsPerChunk,
    lengths,
    // A tight context limits the size of a chunk.
    contextTokens,
  };
  return {
    identity: { kind, version, options },
    selects: 'by labels',

    unsuited: (description, rule) => badInputIn(() => roomFor(config, discoveryRequest({ description, rule }))),
    discover: (input) => discover(config, input),
    label: (input) => label(config, input),
  };
}
