/** Of the scenarios of hosts that share no disk, the one that `make test` has time for. */
import { hosts } from './scenarios';

hosts((name) => name.endsWith('and a third goes on'));
