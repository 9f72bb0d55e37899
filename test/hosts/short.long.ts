/** Of the scenarios of hosts that share no disk, the one that `make test` has time for. */
import { hosts } from './scenarios';

// On two quiet cores it takes about two minutes.
jest.setTimeout(10 * 60_000);
hosts((name) => name.endsWith('and a third goes on'));
