/** Checks what a target does: the conformance checks of the environment protocol, or those of its kind. */
import type { Campaign } from '../../domain/campaign';
import { kindOf } from '../../domain/kinds';
import { checkEnvironment, type Finding } from '../../environments/conformance';
import { openEnvironment } from '../../environments/kinds';
import { withPlugins } from '../../plugins';
import { openStore } from '../../store/open-store';
import type { Home } from '../project';
import { onInterrupt } from '../services/supervisor';

interface TargetCheck {
  target: Pick<Campaign, 'target' | 'plugins'>;
  home: Home;
  /** Called with notes on the target. */
  say: (line: string) => void;
  /** Called with each conformance check as it begins. */
  onCheck?: (check: string) => void;
}

/** Returns the findings; undefined after Ctrl-C, when everything that was started has ended. */
export async function checkTarget(o: TargetCheck): Promise<readonly Finding[] | undefined> {
  const { target: spec, plugins } = o.target;
  const { check } = kindOf(withPlugins(plugins).environments, spec);
  if (!check) return checkConformance(o);
  const { signal, dispose } = onInterrupt({ onFirst: () => o.say('stopping the program'), onSecond: () => undefined });
  try {
    return await check(spec, o.say, { signal });
  } catch (error) {
    if (signal.aborted) return undefined;
    throw error;
  } finally {
    dispose();
  }
}

async function checkConformance({ target, home, say, onCheck = () => undefined }: TargetCheck): Promise<Finding[]> {
  const kinds = withPlugins(target.plugins).environments;
  const store = await openStore(home.root);
  let isUserPlayed = false;
  // The environment is checked, not its user: any answer will do.
  const speak = async () => {
    isUserPlayed = true;
    return { role: 'user', content: 'Please go on.' } as const;
  };
  const open = () => openEnvironment(target.target, { kinds, store, partners: { user: { id: 'check', speak } } });
  const environment = await open();
  const note = (text: string) => say(`note: ${text}`);
  try {
    const findings = await checkEnvironment(environment, {
      again: open,
      isUserPlayed: () => isUserPlayed,
      onCheck,
      onNote: ({ check, problem, fix }) => note(`${check}: ${problem}; ${fix}`),
    });
    if (findings.length === 0) (await environment.describe()).notes?.forEach(note);
    return findings;
  } finally {
    await environment.close().catch(() => undefined);
  }
}
