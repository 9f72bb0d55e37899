/**
 * The given analyst: capabilities that somebody else found, in a file, with the labels of their passes, are needed
 * together, or neither. Invariant: its identity holds what the files hold, or digests of it, so that an edited file is another analyst and a
 * moved one is not.
 */
import { z } from 'zod';
import { digest } from '../../artifacts/hash';
import { OutsideFailure } from '../../domain/failures';
import { defineKind, type Identity } from '../../domain/kinds';
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
  const options = {
    capabilities: digest(capabilities),
    ...(labels && { labels: digest(labels.passes) }),
  };
  return {
    identity: { kind, version, options },
    ignoresSeed: true,
    ...(labels ? { selects: 'by labels' } : { selects: 'outright', selected: capabilities.length }),

    unsuited(_, { maxCandidates, passes }) {
      const { length } = capabilities;
      if (length > maxCandidates)
        return `${file}: capabilities are ${length}, selection.maxCandidates is ${maxCandidates}; set it to ${length}`;
      const files = labels?.passes.length ?? passes;
      return files < passes ? tooFew(passes) : undefined;
    },

    async discover({ quotable }) {
      const quoted = (keys: string[]) => keys.filter((key) => quotable.has(key));
      const candidates = capabilities.map((one) => ({ ...one, examples: quoted(one.examples) }));
      return { candidates, faults: [] };
    },

    async label({ pass }) {
      if (!labels) throw new Error(`${file}: labels is missing, so there is no pass ${pass} to give`);
      const found = labels.passes[pass];
      if (found) return found;
      throw new OutsideFailure('BadInput', tooFew(pass + 1));
    },
  };

  function tooFew(passes: number): string {
    const { folder, passes: files } = labels ?? { folder: '', passes: [] };
    return `${file}: labels ${folder} holds ${files.length} files, not ${passes}; set selection.passes to ${files.length}`;
  }
}
