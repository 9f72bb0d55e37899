/** All scenarios of hosts that share no disk: `make test-hosts` (ONLY=regexp of scenarios, HOSTS_SEED=n). */
import { hosts } from './scenarios';

const only = new RegExp(process.env['ONLY'] ?? '');
hosts((name) => name === 'undisturbed' || only.test(name));
