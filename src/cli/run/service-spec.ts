/** What a service is: how it is started, when it is ready, how long it may take to end. */
export interface ServiceSpec {
  name: string;
  command: string;
  /** A function is asked before every start: ports that nobody else knows are chosen anew. */
  args: string[] | (() => Promise<string[]>);
  cwd: string;
  env: NodeJS.ProcessEnv;
  /** Whether it can be used now; asked every 100 ms with the last lines that it wrote. */
  isReady: (output: string[]) => boolean | Promise<boolean>;
  readySeconds: number;
  /** How long it may take to end by itself after SIGTERM. */
  graceSeconds: number;
  /** Whether it ends itself, with an exit code of its own, when it fails all that it takes. */
  stopsWhenFaulty?: boolean;
}
