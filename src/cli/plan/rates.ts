/**
 * What a rollout costs, and how long one is as a language model is shown it. Invariant: every rate says where it is from: measured in an earlier campaign, read from a file, or assumed and
 * on which grounds.
 */
import { join } from 'node:path';
import { z } from 'zod';
import { openFolderStore } from '../../artifacts/folder-store';
import type { Campaign } from '../../domain/campaign';
import { jsonText } from '../../domain/messages';
import { publishedRun } from '../../domain/presets';
import type { Report } from '../../report/model';
import { type Purpose, rolloutSchema } from '../../domain/rollout';
import { compactOne } from '../../domain/transcript';
import { tokensOf } from '../../domain/endpoints';
import type { Home } from '../project';
import type { PlannedRollouts, Range } from './estimate';

export type Kind = PlannedRollouts['kind'];
export const kinds = ['rollout', 'training'] as const;
/** Of one rollout: wall time with the campaign's layout, and the policy's tokens; every turn counts its whole prompt. */
export const quantities = ['seconds', 'promptTokens', 'completionTokens'] as const;
export type Quantity = (typeof quantities)[number];

export interface Rate extends Range {
  basis: 'measured' | 'file' | 'assumed';
  source: string;
}
export type Rates = Record<Kind, Record<Quantity, Rate>>;

const amount = z.number().nonnegative();
const ofKind = z.strictObject({ seconds: amount, promptTokens: amount, completionTokens: amount }).partial();
/** A file of rates: any of them, by kind. */
export const ratesFileSchema = z.strictObject({ rollout: ofKind, training: ofKind }).partial();
export type RatesFile = z.infer<typeof ratesFileSchema>;

/** Measured rates first, then the file's, then assumptions. */
export function ratesOf(o: {
  campaign: Campaign;
  reports: Report[];
  file?: { path: string; rates: RatesFile };
  /** Of the base model's weights. */
  gigabytes: number;
}): Rates {
  const { campaign, reports, file, gigabytes } = o;
  const assumed = assumptions(campaign, gigabytes);
  const pick = (kind: Kind, quantity: Quantity): Rate => {
    for (const report of reports) {
      const value = measured(report)[kind][quantity];
      const source = `campaign ${report.campaign.name} of ${report.campaign.startedAt.slice(0, 10)}`;
      if (value !== undefined) return { low: value, high: value, basis: 'measured', source };
    }
    const given = file?.rates[kind]?.[quantity];
    if (given !== undefined) return { low: given, high: given, basis: 'file', source: file?.path ?? '' };
    return { ...assumed[kind][quantity], basis: 'assumed' };
  };
  const ofOneKind = (kind: Kind) => ({
    seconds: pick(kind, 'seconds'),
    promptTokens: pick(kind, 'promptTokens'),
    completionTokens: pick(kind, 'completionTokens'),
  });
  return { rollout: ofOneKind('rollout'), training: ofOneKind('training') };
}

type Measured = Record<Kind, Partial<Record<Quantity, number>>>;

/** What one report tells of the cost of a rollout. */
export function measured({ rollouts, cost }: Report): Measured {
  const purposes = rollouts?.byPurpose ?? [];
  const perRollout = cost?.secondsPerRollout ?? {};
  const tokens = (field: 'promptTokens' | 'completionTokens', wanted: (purpose: Purpose) => boolean) => {
    const counted = purposes.filter((p) => wanted(p.purpose) && p[field] !== undefined);
    const n = counted.reduce((sum, p) => sum + p.scored.n, 0);
    return n === 0 ? undefined : counted.reduce((sum, p) => sum + (p[field]?.value ?? 0), 0) / n;
  };
  const training = (purpose: Purpose) => purpose === 'training';
  return {
    rollout: present({
      seconds: perRollout.rollout,
      promptTokens: tokens('promptTokens', (p) => !training(p)),
      completionTokens: tokens('completionTokens', (p) => !training(p)),
    }),
    training: present({
      seconds: perRollout.training,
      promptTokens: tokens('promptTokens', training),
      completionTokens: tokens('completionTokens', training),
    }),
  };
}

const present = (values: Record<Quantity, number | undefined>): Partial<Record<Quantity, number>> =>
  Object.fromEntries(Object.entries(values).filter(([, value]) => value !== undefined));

type Assumed = Record<Kind, Record<Quantity, Range & { source: string }>>;

/**
 * Seconds of a rollout on two cores for each gigabyte of float32 weights beside the demo's: SmolLM2-135M (0.54 GB), 64 tokens a rollout, processor
 * time by two (docs/results.md). Twice that is the upper end: server and trainer share the cores.
 */
const perGigabyte = { rollout: 0.4, training: 0.86 };
const DEMO_GIGABYTES = 0.004;

function assumptions({ policyServer, workers, rollouts }: Campaign, gigabytes: number): Assumed {
  if (policyServer.kind === 'embedded') {
    const demo = 'the demo, seed 2 (docs/results.md): its model, its environment, two cores';
    const weights = `${gigabytes.toFixed(2)} GB of weights, as docs/results.md has it for 0.54 GB and 64 tokens; two cores`;
    const of = (value: number, more = 0) => ({
      low: value + more,
      high: value + 2 * more,
      source: more > value ? weights : demo,
    });
    const larger = Math.max(0, gigabytes - DEMO_GIGABYTES);
    const chat =
      'no measurement: between the demo and SmolLM2-135M on instructions (docs/results.md), one answer as long as may be';
    const tokens =
      larger === 0
        ? { promptTokens: of(340), completionTokens: of(20) }
        : {
            promptTokens: { low: 50, high: 340, source: chat },
            completionTokens: { low: 20, high: Math.max(20, rollouts.sampling.maxTokens), source: chat },
          };
    return {
      rollout: { seconds: of(0.011, larger * perGigabyte.rollout), ...tokens },
      training: { seconds: of(0.016, larger * perGigabyte.training), ...tokens },
    };
  }
  const { source, hoursPerAdapter, gpus, gpu, trainingRollouts, capabilities } = publishedRun;
  const perAdapter = trainingRollouts / capabilities;
  // Where all of them see the same GPUs, one is taken.
  const trainers = workers.gpuSlots * workers.gpusPerTrainer || 1;
  const [low, high] = hoursPerAdapter.map((hours) => (hours * 3600) / perAdapter) as [number, number];
  const published = `${source}: ${hoursPerAdapter.join(' to ')} h per adapter, taken as ${perAdapter} rollouts, on ${gpus.join(' to ')} ${gpu}`;
  const tokens = {
    promptTokens: {
      low: 6 * 5000,
      high: 20 * 9000,
      source: 'no measurement: 6 to 20 turns, each with a prompt of 5,000 to 9,000 tokens',
    },
    completionTokens: { low: 6 * 60, high: 20 * 150, source: 'no measurement: 6 to 20 turns of 60 to 150 tokens' },
  };
  return {
    rollout: {
      seconds: { low: low / 10, high, source: `${published}; without gradient between a tenth of it and all of it` },
      ...tokens,
    },
    training: {
      seconds: {
        low: low * (gpus[0] / trainers),
        high: high * (gpus[1] / trainers),
        source: `${published}; ${trainers} here`,
      },
      ...tokens,
    },
  };
}

export interface TrajectoryTokens extends Range {
  basis: 'measured' | 'assumed';
  source: string;
}

const ASSUMED: TrajectoryTokens = {
  low: 4 * 40,
  high: 20 * 200,
  basis: 'assumed',
  source: 'no measurement: 4 to 20 turns of 40 to 200 tokens once they are compacted',
};

/** By the newest report of like campaigns that has base rollouts in the home's store. */
export async function trajectoryTokens(reports: readonly Report[], home: Home): Promise<TrajectoryTokens> {
  const store = openFolderStore(join(home.root, 'artifacts'));
  const line = jsonText.pipe(rolloutSchema);
  for (const { campaign, rollouts } of reports) {
    const [ref] = rollouts?.byPurpose.find(({ purpose }) => purpose === 'base_rollouts')?.scored.from ?? [];
    // What is damaged or gone is measured in the next one.
    const text = ref && (await store.read(ref).catch(() => undefined))?.toString('utf8');
    const lengths = (text ?? '').split('\n').flatMap((one) => {
      const rollout = one === '' ? undefined : line.safeParse(one).data;
      return rollout?.status === 'scored' ? [tokensOf(compactOne({ rollout, id: 'r100' }).length)] : [];
    });
    if (lengths.length === 0) continue;
    const mean = lengths.reduce((sum, length) => sum + length, 0) / lengths.length;
    return {
      low: mean,
      high: mean,
      basis: 'measured',
      source: `campaign ${campaign.name}, ${lengths.length} base rollouts`,
    };
  }
  return ASSUMED;
}
