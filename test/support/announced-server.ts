/** A home whose Temporal server is another one: this process holds the lock as its supervisor. */
import { homeAt } from '../../src/cli/project';
import { acquireLock, announce, clearState } from '../../src/cli/services/processes';

export interface AnnouncedServer {
  /** Announces the server's address; undefined if none runs. */
  isAt(address: string | undefined): void;
  /** Gives up the lock; the state file stays, as a killed supervisor leaves it. */
  release(): Promise<void>;
}

export async function announcedServer(folder: string): Promise<AnnouncedServer> {
  const home = homeAt(folder);
  const release = await acquireLock(home);
  return {
    isAt: (address) => (address === undefined ? clearState(home) : announce(home, { temporalAddress: address })),
    release: () => release().catch(() => undefined),
  };
}
