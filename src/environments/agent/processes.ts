/**
 * The processes of agents' programs (Linux; elsewhere nothing is found): each is known by its control group, by its session, or by the name in its
 * environment, and is lost to us where it has none of them.
 * Invariant: those of all programs are counted together, so that looking costs the same however many play.
 */
import { readdirSync, readFileSync, statSync } from 'node:fs';
import { isFull, processesIn } from './control-group';

/** The variable that names the program. */
export const MARK = 'CAMPAIGN_ROLLOUT';

interface Program {
  mark: string;
  /** Of its first process, which leads the session. */
  pid: number | undefined;
  /** In which the kernel holds it to its number. */
  group: string | undefined;
}

/** What a process starts while the others are killed is found in the next round. */
const ROUNDS = 50;

export function killAll(program: Program): void {
  for (let round = 0; round < ROUNDS; round++) {
    const inGroup = program.group === undefined ? [] : processesIn(program.group);
    const found = new Set([...inGroup, ...running().filter((pid) => isOf(program, pid))]);
    if (found.size === 0) return;
    for (const pid of found) {
      try {
        process.kill(pid, 'SIGKILL');
      } catch {
        // It is gone already.
      }
    }
  }
}

const LOOK_MS = 100;
/** Every so many looks all are counted, else only where there are so many more processes on the machine. */
const COUNTED = 20;
const MORE = 16;

const watched = new Map<Program, { most: number; onMany: () => void }>();
let timer: NodeJS.Timeout | undefined;
let looks = 0;
let last = 0;

/** `onMany`: it wants more than so many processes and threads; without a group it may have had them for a moment. Ends when what is returned is called. */
export function watch(program: Program, most: number, onMany: () => void): () => void {
  watched.set(program, { most, onMany });
  timer ??= setInterval(look, LOOK_MS).unref();
  return () => {
    watched.delete(program);
    if (watched.size > 0) return;
    clearInterval(timer);
    timer = undefined;
  };
}

function look(): void {
  for (const [{ group }, { onMany }] of watched) if (group !== undefined && isFull(group)) onMany();
  const programs = [...watched.keys()].filter(({ group }) => group === undefined);
  if (programs.length > 0) count(programs);
}

function count(programs: readonly Program[]): void {
  const pids = running();
  if (++looks % COUNTED !== 0 && pids.length < last + MORE) return;
  last = pids.length;
  const counts = new Map<Program, number>();
  const [bySession, byMark] = [
    new Map(programs.map((one) => [one.pid, one])),
    new Map(programs.map((one) => [one.mark, one])),
  ];
  for (const pid of pids) {
    const program = bySession.get(sessionOf(pid)) ?? byMark.get(markOf(pid) ?? '');
    if (program) counts.set(program, (counts.get(program) ?? 0) + threadsOf(pid));
  }
  for (const [program, count] of counts) {
    const { most, onMany } = watched.get(program)!;
    if (count > most) onMany();
  }
}

const isOf = ({ mark, pid: session }: Program, pid: number): boolean =>
  (session !== undefined && sessionOf(pid) === session) || markOf(pid) === mark;

/** Its fourth field behind the name, which may hold anything. */
function sessionOf(pid: number): number {
  try {
    return Number(/\) \S+ \S+ \S+ (\d+)[^)]*$/.exec(readFileSync(`/proc/${pid}/stat`, 'latin1'))?.[1]);
  } catch {
    return 0;
  }
}

function running(): number[] {
  try {
    return readdirSync('/proc').map(Number).filter(Number.isInteger);
  } catch {
    return [];
  }
}

function markOf(pid: number): string | undefined {
  try {
    return new RegExp(`(?:^|\\0)${MARK}=([^\\0]*)`).exec(readFileSync(`/proc/${pid}/environ`, 'latin1'))?.[1];
  } catch {
    return undefined;
  }
}

/** A folder each, and its own two names. */
function threadsOf(pid: number): number {
  try {
    return Math.max(1, statSync(`/proc/${pid}/task`).nlink - 2);
  } catch {
    return 0;
  }
}
