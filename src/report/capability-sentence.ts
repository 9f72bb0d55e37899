/** What became of a capability, as a sentence of the verdict: an adapter helped, did not, or is gamed; or why there is none. */
import type { Figure } from '../domain/figure';
import type { VerdictSentence } from '../domain/report';
import type { BranchComparison, ReportedCapability } from '../domain/reported-capability';
import { valueText } from './format';
import { gamed } from './gamed';
import { level, say } from './sentence';

const gamedSentence = (
  name: string,
  o: { gained: BranchComparison[]; lost: BranchComparison[]; target: string; behind: Figure },
): VerdictSentence => {
  const on = (branches: BranchComparison[]): string =>
    branches
      .map((b) => `${valueText(b.difference)} on ${b.branch} (${level(b.difference)}, n ${b.difference.n})`)
      .join(' and ');
  return say(
    `Adapter ${name} is gamed: on held-out seeds of its own environment success changes by ${on(o.gained)} but by ${on(o.lost)}. ` +
      `${o.target}. The router may choose it all the same.`,
    ...[...o.gained, ...o.lost].map(({ difference }) => difference),
    o.behind,
  );
};

export const capabilitySentence = (capability: ReportedCapability): VerdictSentence | undefined => {
  const { name, status, validation, reason } = capability;
  if (status === undefined) return undefined;
  if (status !== 'trained') {
    const rounds = capability.rounds?.length ?? 0;
    const after = status !== 'failed' && rounds > 0 ? ` after ${rounds} round${rounds === 1 ? '' : 's'}` : '';
    const because = reason === undefined ? '' : `: ${reason}`;
    return say(
      `${name} has no adapter (${status.replace('_', ' ')}${after})${because}.`,
      capability.calibration?.meanReward,
    );
  }
  if (validation === undefined) return say(`Adapter ${name} was not validated.`);
  const { before, after, difference } = validation.target;
  const from = capability.parts === undefined ? '' : ', before as the sum of its parts';
  const change = `${valueText(before)} to ${valueText(after)} on held-out target tasks${from}`;
  const sure = difference === undefined ? '' : ` (${valueText(difference)}, ${level(difference)})`;
  const told = gamed(validation.branches);
  if (told !== undefined)
    return gamedSentence(name, { ...told, target: `${change}${sure}`, behind: difference ?? after });
  if (validation.verdict === undefined)
    return say(
      `Adapter ${name} was chosen among its iterations by held-out target tasks: ${change}${sure}; they can't judge it as well.`,
      difference ?? after,
    );
  const helped = validation.verdict === 'helps' ? 'helped' : 'shows no gain beyond chance';
  return say(`Adapter ${name} ${helped}: ${change}${sure}.`, difference ?? after);
};
