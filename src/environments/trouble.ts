/**
 * What goes wrong with an environment's process. Invariant: it is an OutsideFailure that says which method, what is wrong with which field,
 * and how to mend it; what the process itself says is quoted up to a length.
 */
import { OutsideFailure, type FailureType } from '../domain/failures';

interface TroubleParts {
  /** The environment, as a user would name it. */
  environment: string;
  method?: string | undefined;
  /** Begins with the field where there is one. */
  problem: string;
  fix: string;
  /** The process's last words. */
  stderr?: string;
  /** It answered nothing in time: whatever is asked next would be waited for as long. */
  silent?: boolean;
  /** It asks for a model that nobody has named. */
  lacks?: 'user' | 'judge';
}

export class EnvironmentTrouble extends OutsideFailure {
  constructor(
    type: FailureType,
    readonly parts: TroubleParts,
  ) {
    const { environment, method, problem, fix, stderr } = parts;
    const said = stderr ? `; its last words on stderr:\n${stderr}` : '';
    super(type, `${[environment, method, problem].filter(Boolean).join(': ')}; ${fix}${said}`);
  }
}

const QUOTED = 300;

/** Text of an environment's within an error: its beginning, and how long it is. */
export const quoted = (text: string, length = QUOTED): string =>
  text.length <= length ? text : `${text.slice(0, length)}... (${text.length} characters)`;
