/** What a study is, and what it leaves. */
import type { Campaigns } from './campaigns';
import type { Scale } from './scale';
import type { Settings } from './settings';
import type { Table } from './tables';

export interface Context {
  settings: Settings;
  scale: Scale;
  campaigns: Campaigns;
  signal: AbortSignal;
}

/** What was measured: tables, by name. */
export interface Section {
  tables: Record<string, Table>;
}

export interface Study {
  name: string;
  run(context: Context): Promise<Section>;
}
