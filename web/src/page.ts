/** The data of a page, by its kind, and where the page is shown. */
import { createContext } from 'preact';
import { visible } from '../../src/report/format';
import type { Analysis } from '../../src/cli/analyse/result';
import type { Comparison } from '../../src/report/comparison';
import type { Report } from '../../src/report/model';
import type { CampaignPage, HomePage } from '../../src/view/api';

type LanguageModelCost = NonNullable<NonNullable<Report['cost']>['languageModel']>;

export type Page =
  | CampaignPage
  | HomePage
  | { kind: 'comparison'; title: string; comparison: Comparison }
  | { kind: 'analysis'; title: string; analysis: Analysis; spent?: LanguageModelCost };

export interface Place {
  /** The campaign whose figures and artifacts are shown; absent on other pages. */
  campaign?: string | undefined;
  /** `campaign view` serves the page, with all conversations. */
  served?: boolean | undefined;
  /** Shows a message beside the title. */
  announce: (text: string) => void;
}
export const PlaceContext = createContext<Place>({ announce: () => undefined });

/** Parses data of a campaign. Characters that turn the direction of writing or have no width are spelled out in all texts. */
export const parsed = <T>(text: string): T =>
  JSON.parse(text, (_, value: unknown) => (typeof value === 'string' ? visible(value) : value)) as T;
