/** Runs the one scenario of hosts without a shared disk that `make test` has time for. */
import { hosts } from './scenarios';

// On two quiet cores it takes about two minutes.
jest.setTimeout(10 * 60_000);
hosts((name) => name.endsWith('and a third continues'));
