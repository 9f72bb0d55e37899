/** The GPUs that a campaign's trainers need on this machine. */
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import type { Campaign } from '../../domain/campaign';
import { messageOf } from '../errors';
import { failed, passed, type Check } from './check';

/** Undefined where the campaign asks for none. */
export async function checkGpus(
  { workers }: Campaign,
  {
    visible = process.env['CUDA_VISIBLE_DEVICES'],
    program = 'nvidia-smi',
  }: { visible?: string; program?: string } = {},
): Promise<Check | undefined> {
  const needed = workers.gpuSlots * workers.gpusPerTrainer;
  if (needed === 0) return undefined;
  const layout = `workers.gpuSlots ${workers.gpuSlots} x workers.gpusPerTrainer ${workers.gpusPerTrainer}`;
  const fix = `use a machine with ${needed} for the trainers, or lower ${layout}`;
  try {
    const query = ['--query-gpu=index,name,memory.total', '--format=csv,noheader'];
    const { stdout } = await promisify(execFile)(program, query, { timeout: 20_000 });
    const all = stdout.trim().split('\n').filter(Boolean);
    const own = visible?.split(',').filter(Boolean).length ?? all.length;
    const text = `${own} of ${all.length} for trainers (CUDA_VISIBLE_DEVICES ${visible ?? 'not set'}), ${all[0] ?? 'none'}`;
    return Math.min(own, all.length) >= needed
      ? passed('GPUs', text)
      : failed('GPUs', `${text}; ${needed} needed`, fix);
  } catch (error) {
    return failed('GPUs', `${program} does not answer (${messageOf(error)}); ${needed} GPUs needed`, fix);
  }
}
