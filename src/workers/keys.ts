/** Imported first by a worker: other modules read variables as they load. */
import { takeKeys } from '../domain/secrets';

takeKeys();
