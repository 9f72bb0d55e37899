/** Which of the things that wait a command line means. Invariant: nothing is decided that it does not name, or that is not all there is. */
import { UserError } from '../errors';
import { ALL, subjectText, type AskedOf } from './asked';

export interface Rejected {
  asked: AskedOf;
  /** Capabilities to leave out; undefined for all, and of an environment. */
  names?: string[];
}

/** @throws UserError in words. */
export function toApprove(o: {
  campaign: string;
  waits: AskedOf[];
  what?: string | undefined;
  edits: boolean;
}): AskedOf[] {
  const { campaign, waits, what, edits } = o;
  const [first, second] = waits;
  if (!first) throw new UserError(`nothing of campaign ${campaign} waits for approval`);
  if (what === undefined || what === ALL) {
    if (edits && second)
      throw new UserError(`--edit is of one: ${waits.map(subjectText).join('; ')} wait for approval; name one of them`);
    return waits;
  }
  const environment = environmentOf(waits, what);
  if (environment) return [environment];
  if (first.waiting.what === 'capabilities' && first.waiting.names.includes(what))
    throw new UserError(
      `the selected capabilities of ${campaign} are approved together (${first.waiting.names.join(', ')}): \`campaign approve ${campaign}\`; some are left out with \`campaign reject ${campaign} NAME... --reason TEXT\` or --edit FILE`,
    );
  throw unknown(what, waits);
}

/** @throws UserError in words. */
export function toReject(o: { campaign: string; waits: AskedOf[]; what: readonly string[] }): Rejected[] {
  const { campaign, waits, what } = o;
  const [first] = waits;
  if (!first) throw new UserError(`nothing of campaign ${campaign} waits for approval`);
  if (what.includes(ALL)) {
    if (what.length > 1) throw new UserError(`"${ALL}" is all that waits: name nothing beside it`);
    return waits.map((asked) => ({ asked }));
  }
  if (first.waiting.what === 'capabilities') {
    for (const name of what) if (!first.waiting.names.includes(name)) throw unknown(name, waits);
    return [{ asked: first, names: [...what] }];
  }
  return what.map((name) => {
    const asked = environmentOf(waits, name);
    if (!asked) throw unknown(name, waits);
    return { asked };
  });
}

const environmentOf = (waits: readonly AskedOf[], name: string): AskedOf | undefined =>
  waits.find(({ waiting }) => waiting.what === 'environment' && waiting.names.includes(name));

const unknown = (name: string, waits: readonly AskedOf[]): UserError =>
  new UserError(`${name} does not wait for approval; what waits: ${waits.map(subjectText).join('; ')}`);
