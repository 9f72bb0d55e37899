/**
 * How many threads the sandboxes of a process may have. Invariants: never more than `most` at once; who asks first is served first; nobody
 * waits without end: a thread that nobody asks is given on at once, a busy one at the end of a call once its turn is over.
 */
import { IDLE_MS, MOST_THREADS, TURN_MS } from './limits';

/** A sandbox's claim to a thread. */
export interface Claim {
  /** The slot is the claimant's until it releases it. */
  granted(): void;
  /** Asks for the slot back: the claimant has been idle. */
  giveBack(): void;
  /** Since when nothing has been asked of it; undefined while it works. */
  idleSince(): number | undefined;
}

export interface ThreadSlots {
  claim(claimant: Claim): void;
  release(claimant: Claim): void;
  /** Whether one that works has to release its slot now, between two calls. */
  turnIsOver(claimant: Claim): boolean;
}

const LOOK_MS = 50;

export function threadSlots(o: { most: number; idleMs: number; turnMs: number }): ThreadSlots {
  /** Since when. */
  const holding = new Map<Claim, number>();
  const waiting = new Map<Claim, number>();
  let look: NodeJS.Timeout | undefined;

  function fill(): void {
    for (const claimant of waiting.keys()) {
      if (holding.size >= o.most) break;
      waiting.delete(claimant);
      holding.set(claimant, performance.now());
      claimant.granted();
    }
    if (waiting.size > 0) return void (look ??= setInterval(reclaim, LOOK_MS));
    clearInterval(look);
    look = undefined;
  }

  /** From the one that has been idle longest. */
  function reclaim(): void {
    const idle = [...holding.keys()].flatMap((claimant) => {
      const since = claimant.idleSince();
      return since !== undefined && performance.now() - since >= o.idleMs ? [{ claimant, since }] : [];
    });
    idle.sort((a, b) => a.since - b.since)[0]?.claimant.giveBack();
  }

  return {
    claim(claimant) {
      if (holding.has(claimant) || waiting.has(claimant)) return;
      waiting.set(claimant, performance.now());
      fill();
    },
    release(claimant) {
      holding.delete(claimant);
      waiting.delete(claimant);
      fill();
    },
    turnIsOver(claimant) {
      const [asked] = waiting.values();
      const since = holding.get(claimant);
      if (asked === undefined || since === undefined) return false;
      return performance.now() - Math.max(asked, since) >= o.turnMs;
    },
  };
}

/** Of this process. */
export const processThreads = threadSlots({ most: MOST_THREADS, idleMs: IDLE_MS, turnMs: TURN_MS });
