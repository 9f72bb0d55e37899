/** What changes between two snapshots, one object a line: for logs and for programs. */
import type { Rates } from './rates';
import type { Snapshot } from './snapshot';
import { brokenText, stateOf, treeLines } from './tree';
import { attentionText } from './waits';

export interface ChangeLine {
  time: string;
  campaign: string;
  /** The stage, or `campaign` for the workflow as a whole. */
  stage: string;
  /** The capability or arm, where it is about one. */
  child?: string;
  status: string;
  detail: string;
}

/** A status that changes is reported at once; a detail that grows, every so often. */
const DETAIL_MS = 5000;

export class Changes {
  private readonly reported = new Map<string, { status: string; detail: string; at: number }>();
  constructor(private readonly rates: Rates) {}

  /** Lines for what is new in this snapshot. */
  since(snapshot: Snapshot, now: number): ChangeLine[] {
    const detail = snapshot.failure ?? [attentionText(snapshot, now), brokenText(snapshot)].filter(Boolean).join('; ');
    const whole = { key: 'campaign', status: stateOf(snapshot), detail };
    return [whole, ...treeLines({ snapshot, rates: this.rates, now })].flatMap((line) => {
      const before = this.reported.get(line.key);
      // What has not begun has not changed.
      if (!before && line.status === 'waiting') return [];
      const changed = before?.status !== line.status || (before.detail !== line.detail && now - before.at >= DETAIL_MS);
      if (!changed) return [];
      this.reported.set(line.key, { status: line.status, detail: line.detail, at: now });
      const [kind, child] = line.key.split('/');
      return [
        {
          time: new Date(now).toISOString(),
          campaign: snapshot.name,
          stage: child === undefined ? line.key : 'capabilities',
          ...(child === undefined ? {} : { child: kind === 'arm' ? `${child} (arm)` : child }),
          status: line.status,
          detail: line.detail,
        },
      ];
    });
  }
}
