/** `campaign prune`: removes what no campaign needs. */
import type { Command } from 'commander';
import { allOptions, examples, homeOf } from '../options';

export function pruneCommand(program: Command): void {
  program
    .command('prune')
    .description(
      'remove content that nothing refers to, leftovers of dead processes, and folders of trainings whose results are stored',
    )
    .option('--dry-run', 'only say what would go')
    .addHelpText('after', examples(['campaign prune --dry-run', 'what would go'], ['campaign prune']))
    .action(async (_options: unknown, command: Command) => {
      const { dryRun = false, ...options } = allOptions<{ dryRun?: boolean }>(command);
      const home = homeOf(options);
      const { existsSync } = await import('node:fs');
      const { rm } = await import('node:fs/promises');
      const { UserError } = await import('../errors.js');
      const { acquireLock } = await import('../run/processes.js');
      const { sizeText, trainingFolders } = await import('../usage.js');
      const { openStore } = await import('../../artifacts/open-store.js');
      const { usageOf } = await import('../../artifacts/usage.js');
      const { walk } = await import('../../artifacts/contents.js');
      if (!existsSync(home.root)) throw new UserError(`there is no home ${home.root}; name another with --home`);
      const release = acquireLock(home);
      try {
        const store = await openStore(home.root);
        let bytes = 0;
        for (const { path, isStored } of trainingFolders(home, await usageOf(store))) {
          if (!isStored) continue;
          const files = (await walk(path)).filter(({ names }) => names === 1);
          const size = files.reduce((sum, file) => sum + file.bytes, 0);
          bytes += size;
          console.log(`${path}  ${sizeText(size)}`);
          if (!dryRun) await rm(path, { recursive: true, force: true });
        }
        const swept = await store.sweep({ dryRun });
        bytes += swept.bytes;
        console.log(`${swept.files} files of the store  ${sizeText(swept.bytes)}`);
        console.log(`${sizeText(bytes)} ${dryRun ? 'would be freed' : 'freed'}`);
      } finally {
        release();
      }
    });
}
