/** What policies answered to plain requests, beside the base model's answers. Invariant: every difference is paired over requests that both answered. */
import type { ArtifactRef } from '../../domain/artifacts';
import type { ArtifactStore } from '../../artifacts/store';
import { pairedDifference } from '../../domain/paired-statistics';
import { collapsed, plainMeasuresSchema, type PlainMeans, type PlainMeasure } from '../../domain/plain';
import { policyNames } from '../../domain/policy-names';
import type { ReportDraft } from '../../domain/report';
import type { CampaignRecord } from '../../domain/results';
import { mean, meanInterval } from '../../domain/statistics';
import { readArtifact } from './evidence';
import { intervalFigure, nothing, slug, type Level } from './figures';

type Measured = keyof PlainMeans;
const units = { tokens: 'tokens', distinct: 'fraction', baseLogprob: 'nats' } as const;

export async function plainOf(o: {
  store: ArtifactStore;
  record: CampaignRecord;
  level: Level;
}): Promise<Pick<ReportDraft, 'plain'>> {
  const { plain } = o.record;
  if (!plain) return {};
  const failed = plain.failed.length > 0 && { failed: plain.failed };
  if (!plain.measures) return { plain: { policies: [], ...failed } };
  const read = { store: o.store, ref: plain.measures, schema: plainMeasuresSchema, what: 'measures of plain answers' };
  const measures = await readArtifact(read);
  const base = measures[policyNames.base];
  const policies = plain.policies.flatMap(({ name }) => {
    const own = measures[name];
    return own && own.length > 0 ? [rowOf({ name, own, base, level: o.level, from: [read.ref] })] : [];
  });
  return { plain: { policies, ...failed } };
}

function rowOf(o: {
  name: string;
  own: PlainMeasure[];
  base: PlainMeasure[] | undefined;
  level: Level;
  from: ArtifactRef[];
}): NonNullable<ReportDraft['plain']>['policies'][number] {
  const { name, own, base, level, from } = o;
  const figureOf = (of: Measured) => {
    const [id, values] = [`plain.${slug(name)}.${of.toLowerCase()}`, valuesOf(own, of)];
    if (values.size === 0) return nothing(id);
    const estimate = meanInterval({ values: [...values.values()], ...level });
    return intervalFigure({ id, estimate, unit: units[of], method: 'bootstrap over requests', level, from });
  };
  const figures = { tokens: figureOf('tokens'), distinct: figureOf('distinct'), baseLogprob: figureOf('baseLogprob') };
  if (name === policyNames.base || !base) return { name, ...figures };
  const id = `plain.${slug(name)}.baselogprob_to_base`;
  const shared = sharedValues(valuesOf(own, 'baseLogprob'), valuesOf(base, 'baseLogprob'));
  const estimate = shared.treatment.size > 0 && pairedDifference({ ...shared, ...level });
  const method = 'paired bootstrap over requests';
  return {
    name,
    ...figures,
    toBase: estimate ? intervalFigure({ id, estimate, unit: 'nats', method, level, from }) : nothing(id),
    collapsed: collapsed({ of: meansOf(own), base: meansOf(base) }),
  };
}

const valuesOf = (measures: readonly PlainMeasure[], of: Measured): Map<string, number> =>
  new Map(measures.flatMap((one) => (one[of] === undefined ? [] : [[one.task, one[of]] as const])));

function sharedValues(a: Map<string, number>, b: Map<string, number>) {
  const within = (values: Map<string, number>, other: Map<string, number>) =>
    new Map([...values].filter(([task]) => other.has(task)));
  return { treatment: within(a, b), control: within(b, a) };
}

/** Of nothing, nothing: what never answers is collapsed by its length already. */
const meansOf = (measures: readonly PlainMeasure[]): PlainMeans => {
  const of = (which: Measured) => {
    const values = [...valuesOf(measures, which).values()];
    return values.length === 0 ? 0 : mean(values);
  };
  return { tokens: of('tokens'), distinct: of('distinct'), baseLogprob: of('baseLogprob') };
};
