/** Ctrl-C: once, in order; twice, at once; then the same command. */
import { setTimeout as sleep } from 'node:timers/promises';
import { waitUntil } from '../../../src/cli/services/processes';
import { processesOf } from '../../support/faults-processes';
import type { Scenario } from '../../support/faults-scenario';
import type { Phase, Session } from '../../support/faults-session';

const INTERRUPTED = 130;

export async function interrupt(session: Session, times: number): Promise<string[]> {
  const { run, home } = session;
  run.child.kill('SIGINT');
  for (let n = 1; n < times; n++) {
    await sleep(400);
    run.child.kill('SIGINT');
  }
  // A shell says the same of a command that died of the signal: one may come before the command has its handler.
  const code = (await run.exit) ?? (run.child.signalCode === 'SIGINT' ? INTERRUPTED : run.child.signalCode);
  await waitUntil(() => processesOf(home).length === 0, 15);
  const left = processesOf(home).map(({ pid, words }) => `${pid} ${words.slice(0, 3).join(' ')}`);
  return [
    ...(code === INTERRUPTED ? [] : [`Ctrl-C, ${times} times: exit code ${code} instead of ${INTERRUPTED}`]),
    ...(left.length === 0 ? [] : [`Ctrl-C, ${times} times, left ${left.join(', ')}`]),
  ];
}

const interrupted = (times: number, at: readonly Phase[]): Scenario => ({
  name: `Ctrl-C: ${times === 1 ? 'once' : 'twice'}, then the same command`,
  file: 'small',
  async act(session) {
    const found: string[] = [];
    for (const phase of at) {
      session.start();
      await session.phase(phase);
      found.push(...(await interrupt(session, times)));
    }
    session.start();
    return found;
  },
});

export const interrupts: Scenario[] = [
  interrupted(1, ['base rollouts', 'training', 'router']),
  interrupted(2, ['calibration', 'training']),
];
