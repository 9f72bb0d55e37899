/** Synthesizer `given`: uses existing modules, one file for each capability, as they were when the folder was opened. */
import { readFile } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { z } from 'zod';
import { sha256 } from '../store/hash';
import { defineKind, type Identity } from '../domain/kinds';
import type { EnvironmentDescription } from '../domain/environment';
import { badInput } from '../domain/failures';
import { missingExports, withModule } from '../sandbox/module';
import { SandboxError } from '../sandbox/sandbox';
import { moduleFiles, withTools } from '../sandbox/source';
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

    async unsuited(description) {
      for (const [file, text] of texts) {
        const source = sourceOf(text, description);
        const problem = await withModule(source, async (module) => {
          const missing = missingExports(await module.exports());
          if (missing === undefined) await module.describe();
          return missing;
        }).catch((error: unknown) => {
          if (error instanceof SandboxError) return error.message;
          throw error;
        });
        if (problem !== undefined)
          throw badInput(`synthesizer.modules: ${join(folder, file)}: ${problem}; correct the module`);
      }
      return undefined;
    },

    async write({ candidate: { name }, description, progress }) {
      const text = texts.get(`${name}.js`);
      if (text === undefined) {
        throw cannotSynthesize(
          `there is no ${join(folder, `${name}.js`)}; the folder holds ${[...texts.keys()].join(', ')}`,
        );
      }
      progress(1, 1);
      const source = sourceOf(text, description);
      return { source, rationale: rationaleOf(text) ?? `The module for ${name} was given; it says no rationale.` };
    },

    async revise({ candidate: { name } }) {
      const file = join(folder, `${name}.js`);
      throw cannotSynthesize(`correct ${file} and run the campaign under another name (--name)`);
    },
  };
}

/** A module that uses `targetTools` and does not declare it gets the target's tools, as the code of a language model does. */
const sourceOf = (text: string, description: EnvironmentDescription): string =>
  text.includes('targetTools') ? withTools(text, description) : text;

/** Returns the text of a line "// Rationale: ..." among the comments at the beginning. */
function rationaleOf(source: string): string | undefined {
  const [comments = ''] = /^(?:\/\/.*\n|\n)*/.exec(source) ?? [];
  return /^\/\/ Rationale: *(\S.*)$/m.exec(comments)?.[1];
}
