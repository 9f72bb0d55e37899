/**
 * Whether a process works, as can be seen from outside: its processor time grows, its children's with it. Invariant: one that sleeps, is
 * stopped or waits for a lock shows nothing.
 */
import { execFile } from 'node:child_process';
import { readdir, readFile } from 'node:fs/promises';
import { promisify } from 'node:util';

const run = promisify(execFile);

interface Watched {
  /** Undefined where it could not be started. */
  pid: number | undefined;
  everySeconds: number;
  /** After every look: the seconds since it was last seen to work; 0 where it has worked since the look before. */
  onLook: (idleSeconds: number) => void;
}

/** Looks at a process until the function that it returns is called. */
export function watchProcess({ pid, everySeconds, onLook }: Watched): () => void {
  let time: number | undefined;
  let worked = performance.now();
  let looking = false;
  let ended = false;
  const look = async (): Promise<void> => {
    if (looking) return;
    looking = true;
    const before = time;
    time = pid === undefined ? 0 : await processTime(pid);
    looking = false;
    if (ended || before === undefined) return;
    // It is less where a child has gone that nobody waited for.
    const works = time > 0 && time !== before;
    if (works) worked = performance.now();
    onLook(works ? 0 : (performance.now() - worked) / 1000);
  };
  void look();
  const timer = setInterval(() => void look(), everySeconds * 1000);
  return () => {
    ended = true;
    clearInterval(timer);
  };
}

/** Processor time that a process and its children have used, in a unit of the platform; 0 where it is gone. */
async function processTime(pid: number): Promise<number> {
  try {
    return process.platform === 'linux'
      ? await ticks(pid)
      : seconds((await run('ps', ['-o', 'time=', '-p', `${pid}`])).stdout);
  } catch {
    return 0;
  }
}

/** utime, stime, and those of children that have ended (proc(5)); the living ones are asked themselves. */
async function ticks(pid: number): Promise<number> {
  const stat = await readFile(`/proc/${pid}/stat`, 'utf8');
  // The name stands in parentheses and may hold anything; what follows it begins with field 3.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  const own = fields.slice(11, 15).reduce((sum, field) => sum + Number(field), 0);
  const children = await Promise.all((await childrenOf(pid)).map((child) => ticks(child).catch(() => 0)));
  return children.reduce((sum, child) => sum + child, own);
}

async function childrenOf(pid: number): Promise<number[]> {
  const threads = await readdir(`/proc/${pid}/task`);
  const lists = await Promise.all(
    threads.map((thread) => readFile(`/proc/${pid}/task/${thread}/children`, 'utf8').catch(() => '')),
  );
  return lists.flatMap((list) => list.split(' ').filter(Boolean).map(Number));
}

/** Of `[[dd-]hh:]mm:ss[.cc]`. */
const seconds = (time: string): number =>
  time
    .trim()
    .split(/[-:]/)
    .reduce((sum, part, n, { length }) => sum + Number(part) * ([1, 60, 3600, 86_400][length - 1 - n] ?? 0), 0);
