/**
 * The given analyst: capabilities that somebody else found, in a file, with the labels of their passes or without. Invariant: its identity
 * holds digests of what the files hold, so that an edited file is another analyst and a moved one is not.
 */
import { z } from 'zod';
import { digest } from '../../artifacts/hash';
import { OutsideFailure } from '../../domain/failures';
import { defineKind, type Identity } from '../../domain/kind';
import type { Analyst } from '../analyst';
import { readGivenFile } from './file';

export const given = defineKind({
  kind: 'given',
  version: '1',
  options: { capabilities: z.string().min(1) },
  paths: ['capabilities'],
  open: ({ capabilities }, identity) => openGiven(capabilities, identity),
});

async function openGiven(file: string, { kind, version }: Identity): Promise<Analyst> {
  const { capabilities, labels } = await readGivenFile(file);
  const options = { capabilities: digest(capabilities), ...(labels && { labels: digest(labels.passes) }) };
  return {
    identity: { kind, version, options },
    selects: labels ? 'by labels' : 'outright',

    async discover({ quotable, rule: { maxCandidates } }) {
      const { length } = capabilities;
      if (length > maxCandidates)
        throw new OutsideFailure(
          'BadInput',
          `${file}: capabilities are ${length}, selection.maxCandidates is ${maxCandidates}; set it to ${length}`,
        );
      return capabilities.map((one) => ({ ...one, examples: one.examples.filter((key) => quotable.has(key)) }));
    },

    async label({ pass }) {
      if (!labels) throw new Error(`${file}: labels is missing, so there is no pass ${pass} to give`);
      const { folder, passes } = labels;
      const found = passes[pass];
      if (found) return found;
      throw new OutsideFailure(
        'BadInput',
        `${file}: labels ${folder} holds ${passes.length} files; set selection.passes to ${passes.length}`,
      );
    },
  };
}
