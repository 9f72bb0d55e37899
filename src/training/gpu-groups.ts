/** The GPUs of a gpu worker, dealt out to its trainers. Invariant: a GPU has one trainer at a time. */

export interface GpuGroups {
  /** Runs one trainer on a free group; `env` is to be added to its environment. */
  use<R>(run: (env: NodeJS.ProcessEnv) => Promise<R>): Promise<R>;
}

/**
 * Cuts the worker's GPUs into `slots` groups of `perTrainer`. `visible` is the worker's CUDA_VISIBLE_DEVICES; without it, the first
 * ones are taken. With `perTrainer` 0 every trainer sees what the worker sees.
 */
export function dealGpus(o: { slots: number; perTrainer: number; visible: string | undefined }): GpuGroups {
  const { slots, perTrainer, visible } = o;
  if (perTrainer === 0) return { use: (run) => run({}) };
  const needed = slots * perTrainer;
  const gpus = visible?.split(',').filter(Boolean) ?? Array.from({ length: needed }, (_, gpu) => String(gpu));
  if (gpus.length < needed) {
    throw new Error(
      `CUDA_VISIBLE_DEVICES is "${visible}", but ${slots} trainers of ${perTrainer} GPUs need ${needed}; ` +
        'name more, or lower workers.gpuSlots or workers.gpusPerTrainer',
    );
  }
  const free = Array.from({ length: slots }, (_, n) => gpus.slice(n * perTrainer, (n + 1) * perTrainer).join(','));
  return {
    async use(run) {
      const group = free.shift();
      if (group === undefined) throw new Error('more trainers than gpu slots');
      try {
        return await run({ CUDA_VISIBLE_DEVICES: group });
      } finally {
        free.push(group);
      }
    },
  };
}
