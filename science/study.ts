/** What a study is, and what it leaves for the page. */
import type { Campaigns } from './campaigns';
import type { Scale } from './scale';
import type { Settings } from './settings';

export interface Context {
  settings: Settings;
  scale: Scale;
  campaigns: Campaigns;
  signal: AbortSignal;
}

/** What is measured: texts by their names in the template, pictures by theirs. */
export interface Section {
  texts: Record<string, string>;
  pictures?: Record<string, string>;
}

export interface Study {
  name: string;
  run(context: Context): Promise<Section>;
}
