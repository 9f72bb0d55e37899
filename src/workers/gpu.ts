/** GPU worker: one trainer at a time per slot. Start one per GPU group. */
import { createGpuActivities } from '../activities';
import { stoppingWhenFaulty } from '../activities/failures';
import { dealGpus } from '../training/gpu-groups';
import { taskQueues } from '../domain/work';
import { policyDependencies, main, poolOfWorker, runWorker, settings } from './runtime';

main(() => {
  const { gpuSlots, gpusPerTrainer } = settings();
  const visible = process.env['CUDA_VISIBLE_DEVICES'];
  const gpus = dealGpus({ slots: gpuSlots, perTrainer: gpusPerTrainer, visible });
  const deps = { ...policyDependencies(), gpus };
  let onFaulty: (why: string) => void = () => undefined;
  const faulty = new Promise<string>((resolve) => (onFaulty = resolve));
  const options = {
    taskQueue: taskQueues.gpu(poolOfWorker()),
    activities: stoppingWhenFaulty(createGpuActivities(deps), { onFaulty: (why) => onFaulty(why) }),
    maxConcurrentActivityTaskExecutions: gpuSlots,
  };
  return runWorker(deps, options, faulty);
});
