/** A GPU has one trainer at a time. */
import { dealGpus } from '../../../src/training/gpu-groups';

const seen = ({ env }: { env: NodeJS.ProcessEnv }) => env['CUDA_VISIBLE_DEVICES'];

test('trainers get groups of the GPUs that the worker sees, and give them back', () => {
  const gpus = dealGpus({ slots: 2, perTrainer: 2, visible: '4,5,6,7' });
  const first = gpus.take();
  expect([seen(first), seen(gpus.take())]).toEqual(['4,5', '6,7']);
  expect(() => gpus.take()).toThrow('more trainers than gpu slots');
  first.giveBack();
  expect(seen(gpus.take())).toBe('4,5');
});

test('without CUDA_VISIBLE_DEVICES the first GPUs are dealt out', () => {
  expect(seen(dealGpus({ slots: 1, perTrainer: 4, visible: undefined }).take())).toBe('0,1,2,3');
});

test('with none per trainer nothing is set', () => {
  expect(dealGpus({ slots: 3, perTrainer: 0, visible: '' }).take().env).toEqual({});
});

test('too few GPUs are said before any training', () => {
  expect(() => dealGpus({ slots: 2, perTrainer: 4, visible: '0,1' })).toThrow(
    /CUDA_VISIBLE_DEVICES is "0,1", but 2 trainers of 4 GPUs need 8; name more, or lower/,
  );
});
