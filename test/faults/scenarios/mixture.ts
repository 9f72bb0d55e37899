/** Random disturbances, every 5 to 15 seconds, until the campaign ends. */
import { setTimeout as sleep } from 'node:timers/promises';
import { command } from '../../support/campaign-run';
import { CAMPAIGN } from '../../support/faults-checks';
import { damageAll, places, ways, type PlaceName } from '../../support/faults-damage';
import { signal } from '../../support/faults-processes';
import type { Scenario } from '../../support/faults-scenario';
import type { Session } from '../../support/faults-session';
import { interrupt } from './interrupts';

/** One disturbance: says what it did. The campaign runs when it returns, or has ended. */
type Disturb = (session: Session) => Promise<string>;

/** One process, whichever. */
const killOne: Disturb = async (session) => {
  const victim = session.random.pick([...session.running(), 'supervisor'] as const);
  if (victim === 'supervisor') await session.kill(victim);
  else {
    const pid = await session.pidOf(victim);
    if (pid !== undefined) signal(pid, 'SIGKILL');
  }
  return victim;
};

const killAll: Disturb = async (session) => {
  await session.killEverything();
  session.start();
  return 'everything';
};

const holdSomething: Disturb = async (session) => {
  const name = session.random.pick([...session.running(), 'supervisor'] as const);
  const seconds = Math.round(session.random.between(1, 10));
  await session.hold(name, seconds);
  return `${name} for ${seconds} s`;
};

const interruptOnce: Disturb = async (session) => {
  const times = session.random.pick([1, 2]);
  const found = await interrupt(session, times);
  // A campaign that ended just before has another exit code; what is left of it is no less wrong.
  if (found.length > 0 && session.run.child.exitCode !== 0) throw new Error(found.join('\n'));
  session.start();
  return `Ctrl-C ${times === 1 ? 'once' : 'twice'}`;
};

const damageSomething: Disturb = async (session) => {
  await session.killEverything();
  const name = session.random.pick(Object.keys(places) as PlaceName[]);
  const way = session.random.pick(ways);
  const missing = damageAll(session, [name], way);
  session.start();
  return missing.length > 0 ? 'everything' : `everything, ${name} ${way}`;
};

const cancel: Disturb = async (session) => {
  // The command fails before the campaign starts and after it ends.
  const isCancelled = await command(session.home, 'cancel', CAMPAIGN, '--yes').then(
    () => true,
    () => false,
  );
  if (!isCancelled) return 'cancel, refused';
  await session.run.exit;
  session.start();
  return 'cancel';
};

const untilItEnds = (ways: readonly Disturb[]) => async (session: Session) => {
  session.start();
  const done: string[] = [];
  for (;;) {
    await Promise.race([sleep(session.random.between(5, 15) * 1000), session.run.exit]);
    if (session.run.ended) break;
    done.push(await session.random.pick(ways)(session));
  }
  session.notes.push(`disturbed: ${done.join(', ') || 'nothing'}`);
};

export const mixtures: Scenario[] = [
  { name: 'mixture: random kills', file: 'small', act: untilItEnds([killOne]) },
  {
    name: 'mixture: kills, stops, Ctrl-C, damage, cancels',
    file: 'small',
    allow: { madeAgain: true },
    act: untilItEnds([killOne, killOne, killAll, holdSomething, interruptOnce, damageSomething, cancel]),
  },
];
