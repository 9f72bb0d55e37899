/** The GPUs of a gpu worker, dealt out to its trainers. Invariant: a GPU has one trainer at a time. */

export interface GpuGroups {
  /** A free group for one trainer: what to add to its environment. Give it back when the trainer has ended. */
  take(): { env: NodeJS.ProcessEnv; giveBack: () => void };
}

/**
 * Cuts the worker's GPUs into `slots` groups of `perTrainer`. `visible` is the worker's CUDA_VISIBLE_DEVICES; without it, the first
 * ones are taken. With `perTrainer` 0 every trainer sees what the worker sees.
 */
export function dealGpus(o: { slots: number; perTrainer: number; visible: string | undefined }): GpuGroups {
  const { slots, perTrainer, visible } = o;
  if (perTrainer === 0) return { take: () => ({ env: {}, giveBack: () => undefined }) };
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
    take() {
      const group = free.shift();
      if (group === undefined) throw new Error('more trainers than gpu slots');
      return { env: { CUDA_VISIBLE_DEVICES: group }, giveBack: () => void free.push(group) };
    },
  };
}
