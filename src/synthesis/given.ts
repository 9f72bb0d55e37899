/**
 * Synthesizer `given`: takes modules that somebody wrote, one file a capability, as they were when the folder was
 * opened.
 */
import { readFile } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { z } from 'zod';
import { sha256 } from '../store/hash';
import { defineKind, type Identity } from '../domain/kinds';
import { moduleFiles } from '../sandbox/source';
import { cannotSynthesize, type Synthesizer, type SynthesizerKind } from './synthesizer';

export const given: SynthesizerKind = defineKind({
  kind: 'given',
  version: '1',
  options: {
    modules: z.string().min(1).describe('Folder of modules CAPABILITY.js.'),
  },
  given: { modules: '.js' },
  open: async ({ modules }, identity) => openGiven({ folder: basename(modules), texts: await read(modules), identity }),
});

async function read(folder: string): Promise<Map<string, string>> {
  const files = await moduleFiles(folder, 'synthesizer.modules');
  return new Map(
    await Promise.all(files.map(async (file) => [file, await readFile(join(folder, file), 'utf8')] as const)),
  );
}

function openGiven(o: { folder: string; texts: ReadonlyMap<string, string>; identity: Identity }): Synthesizer {
  const { folder, texts, identity } = o;
  const digests = Object.fromEntries([...texts].map(([file, text]) => [file, sha256(text)]));
  return {
    identity: { ...identity, options: { modules: digests } },
    ignoresSeed: true,

    async write({ candidate: { name }, progress }) {
      const source = texts.get(`${name}.js`);
      if (source === undefined) {
        throw cannotSynthesize(
          `there is no ${join(folder, `${name}.js`)}; the folder holds ${[...texts.keys()].join(', ')}`,
        );
      }
      progress(1, 1);
      return { source, rationale: rationaleOf(source) ?? `The module for ${name} was given; it says no rationale.` };
    },

    async revise({ candidate: { name } }) {
      const file = join(folder, `${name}.js`);
      throw cannotSynthesize(`mend ${file} and run the campaign under another name (--name)`);
    },
  };
}

/** Of a line "// Rationale: ..." among the comments that the text begins with. */
function rationaleOf(source: string): string | undefined {
  const [comments = ''] = /^(?:\/\/.*\n|\n)*/.exec(source) ?? [];
  return /^\/\/ Rationale: *(\S.*)$/m.exec(comments)?.[1];
}
