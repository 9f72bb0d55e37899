/**
 * Where a process lives. Invariant: within one place a process id names one process at a time; ids of different places (another machine,
 * another boot, another container) are never held against each other, even if their hosts have one name.
 */
import { readFileSync, readlinkSync } from 'node:fs';
import { hostname } from 'node:os';
import { z } from 'zod';

export const placeSchema = z.object({
  host: z.string(),
  /** Of the kernel, new at every boot; empty where the system has no /proc. */
  boot: z.string(),
  pidNamespace: z.string(),
});
export type Place = z.infer<typeof placeSchema>;

const read = (get: () => string): string => {
  try {
    return get();
  } catch {
    return '';
  }
};

/** The place of this process. */
export const here: Place = {
  host: hostname(),
  boot: read(() => readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim()),
  pidNamespace: read(() => readlinkSync('/proc/self/ns/pid')).replace(/\D/g, ''),
};

/** Without /proc, the host's name must do: start times there are dates, which do not come twice. */
export const isHere = ({ host, boot, pidNamespace }: Place): boolean =>
  boot === here.boot && pidNamespace === here.pidNamespace && (boot !== '' || host === here.host);

const where = Object.values(here).filter(Boolean).join('/');

/** The name of a worker. */
export const workerIdentity = (pid = process.pid): string => `${pid}@${where}`;
