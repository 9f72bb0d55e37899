/** Progress of a run on stdout: a live tree on a terminal, JSON lines elsewhere. */
import { Changes } from './json-lines';
import { Rates } from './rates';
import type { Snapshot } from './snapshot';
import { frameLines, LiveTree } from './terminal';

export interface ProgressOutput {
  /** Something that happened beside the campaign itself: a service started, died, was stopped. `facts` are for programs alone. */
  note(stage: string, detail: string, facts?: object): void;
  show(snapshot: Snapshot): void;
  /** Where Temporal's UI shows the campaign. */
  link?: string;
}

export const isTerminal = (out: NodeJS.WriteStream = process.stdout): boolean => out.isTTY === true;

/** `campaign` is named in every JSON line. */
export function createProgressOutput(options: {
  json?: boolean | undefined;
  campaign?: string | undefined;
  out?: NodeJS.WriteStream;
}): ProgressOutput {
  const { json, campaign, out = process.stdout } = options;
  const rates = new Rates();
  if (isTerminal(out) && !json) {
    const tree = new LiveTree(out);
    const output: ProgressOutput = {
      note: (_stage, detail) => tree.print(detail),
      show: (snapshot) => {
        tree.draw(frameLines({ snapshot, rates, now: Date.now(), columns: out.columns || 80, link: output.link }));
        if (snapshot.status !== 'RUNNING' || snapshot.asOf !== undefined) tree.leave();
      },
    };
    return output;
  }
  const changes = new Changes(rates);
  const write = (line: object) => void out.write(`${JSON.stringify(line)}\n`);
  return {
    note: (stage, detail, facts) =>
      write({ time: new Date().toISOString(), ...(campaign ? { campaign } : {}), stage, detail, ...facts }),
    show: (snapshot) => changes.since(snapshot, Date.now()).forEach(write),
  };
}
