/** What the report says of a router that could not be fitted, and of options that it can not choose. */
import type { ArtifactStore } from '../../src/artifacts/store';
import type { CampaignRecord } from '../../src/domain/results';
import { routerOf } from '../../src/report/build/router';
import { verdict } from '../../src/report/verdict';
import { reportFixture } from '../support/report-fixture';

test('one that was not fitted has no figures', async () => {
  const record = { router: { reason: 'the router was not fitted', options: ['base'], outcomes: [] } };
  const given = { store: {} as ArtifactStore, record: record as unknown as CampaignRecord };
  expect(await routerOf({ ...given, level: { confidence: 0.95, seed: 1 } })).toEqual({});
});

test('an option that it can not choose is said with the reason', () => {
  const draft = reportFixture();
  draft.router!.failed = [{ name: 'tell_the_price', reason: 'BadInput: another rank' }];
  const texts = verdict(draft).map(({ text }) => text);
  expect(texts).toContain('The router can not choose tell_the_price: BadInput: another rank.');
});
