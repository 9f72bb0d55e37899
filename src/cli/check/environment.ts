/** Checks what a target does: the conformance checks of the environment protocol, or those of its kind. */
import type { Campaign } from '../../domain/campaign';
import type { Environment, EnvironmentDescription } from '../../domain/environment';
import { kindOf } from '../../domain/kinds';
import { checkEnvironment, type Finding } from '../../environments/conformance';
import { openEnvironment } from '../../environments/open';
import { withPlugins } from '../../plugins';
import { openStore } from '../../store/open-store';
import type { Home } from '../project';
import { onInterrupt } from '../run/supervisor';

export const findingText = ({ check, problem, fix }: Finding): string => `${check}: ${problem}; ${fix}`;

interface TargetCheck {
  target: Pick<Campaign, 'target' | 'plugins'>;
  home: Home;
  say: (line: string) => void;
  /** Called with each conformance check as it begins. */
  onCheck?: (check: string) => void;
}

/** Returns the findings; undefined after Ctrl-C, when everything that was started has ended. */
export async function checkTarget(o: TargetCheck): Promise<readonly Finding[] | undefined> {
  const { target: campaign, home, say, onCheck } = o;
  const { target: spec } = campaign;
  const kinds = withPlugins(campaign.plugins).environments;
  const { check } = kindOf(kinds, spec);
  if (!check) {
    let isUserPlayed = false;
    // The environment is checked, not its user: any answer will do.
    const speak = async () => {
      isUserPlayed = true;
      return { role: 'user', content: 'Please go on.' } as const;
    };
    const store = await openStore(home.root);
    return checkConformance({
      open: () => openEnvironment(spec, { kinds, store, partners: { user: { id: 'check', speak } } }),
      isUserPlayed: () => isUserPlayed,
      say,
      onCheck,
    });
  }
  const { signal, dispose } = onInterrupt({ onFirst: () => say('stopping the program'), onSecond: () => undefined });
  try {
    return await check(spec, say, { signal });
  } catch (error) {
    if (signal.aborted) return undefined;
    throw error;
  } finally {
    dispose();
  }
}

async function checkConformance(o: {
  /** Called twice, each time for a process of its own. */
  open: () => Promise<Environment>;
  isUserPlayed: () => boolean;
  say: (line: string) => void;
  onCheck: TargetCheck['onCheck'];
}): Promise<Finding[]> {
  const { open, isUserPlayed, say, onCheck } = o;
  const environment = await open();
  const slowest: Record<string, number> = {};
  const notes: string[] = [];
  let description: EnvironmentDescription | undefined;
  try {
    const findings = await checkEnvironment(
      { ...environment, describe: async () => (description = await environment.describe()) },
      {
        again: open,
        onRequest: (method, seconds) => (slowest[method] = Math.max(slowest[method] ?? 0, seconds)),
        isUserPlayed,
        ...(onCheck && { onCheck }),
        onNote: (note) => void notes.push(findingText(note)),
      },
    );
    const times = Object.entries(slowest);
    if (times.length > 0)
      say(`slowest: ${times.map(([method, seconds]) => `${method} ${seconds.toFixed(2)} s`).join(', ')}`);
    for (const note of [...notes, ...(description?.notes ?? [])]) say(`note: ${note}`);
    return findings;
  } finally {
    await environment.close().catch(() => undefined);
  }
}
