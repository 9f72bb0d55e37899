/** Environments from recorded replies of a language model pass the self-test. */
import { discoverRecorded, readEvaluation } from '../../support/analyse-recorded';
import { writeRecorded } from '../../support/write-recorded';

jest.setTimeout(300_000);

const environments = ['shop-base', 'tau2-retail'].flatMap((set) =>
  readEvaluation(set).environments.map((name) => ({ set, name })),
);

it.each(environments)('$set: $name', async ({ set, name }) => {
  const target = await discoverRecorded({ set });
  const lacking = target.discovery.candidates;
  const [written] = (await writeRecorded({ set, target, lacking, only: [name] })).environments;
  expect(written?.rounds.at(-1)?.findings).toEqual([]);
});
