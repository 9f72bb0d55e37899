/** A GPU has one trainer at a time. */
import { dealGpus, type GpuGroups } from '../../../src/training/learner-process';

const visibleTo = (gpus: GpuGroups): Promise<string | undefined> =>
  gpus.use(async (env) => Promise.resolve(env['CUDA_VISIBLE_DEVICES']));

test('trainers get groups of the GPUs that the worker sees, and give them back', async () => {
  const gpus = dealGpus({ slots: 2, perTrainer: 2, visible: '4,5,6,7' });
  await gpus
    .use(async (first) => {
      expect(first).toEqual({ CUDA_VISIBLE_DEVICES: '4,5' });
      await gpus.use(async (second) => {
        expect(second).toEqual({ CUDA_VISIBLE_DEVICES: '6,7' });
        await expect(visibleTo(gpus)).rejects.toThrow('more trainers than gpu slots');
      });
      expect(await visibleTo(gpus)).toBe('6,7');
      throw new Error('the trainer failed');
    })
    .catch((error: unknown) => expect(error).toMatchObject({ message: 'the trainer failed' }));
  expect([await visibleTo(gpus), await visibleTo(gpus), await visibleTo(gpus)]).toContain('4,5');
});

test('without CUDA_VISIBLE_DEVICES the first GPUs are dealt out', async () => {
  expect(await visibleTo(dealGpus({ slots: 1, perTrainer: 4, visible: undefined }))).toBe('0,1,2,3');
});

test('with none per trainer nothing is set', async () => {
  expect(await visibleTo(dealGpus({ slots: 3, perTrainer: 0, visible: '' }))).toBeUndefined();
});

test('too few GPUs are said before any training', () => {
  expect(() => dealGpus({ slots: 2, perTrainer: 4, visible: '0,1' })).toThrow(
    /CUDA_VISIBLE_DEVICES is "0,1", but 2 trainers of 4 GPUs need 8; name more, or lower/,
  );
});
