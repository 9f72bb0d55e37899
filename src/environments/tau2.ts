/**
 * tau2-bench (docs/tau2.md). Task ids are `domain/id`.
 */
import { z } from 'zod';
import { defineKind } from '../domain/kinds';
import { OVERALL, type PublishedArm } from '../domain/presets';
import type { ProcessCommand } from './connection';
import type { EnvironmentContext, EnvironmentKind } from './kinds';
import { bridgeProgram, maxSilenceOf, openProgram, partnerModels, processLimits } from './process';

const domainSchema = z.enum(['mock', 'airline', 'retail', 'telecom']);
export type Tau2Domain = z.infer<typeof domainSchema>;

const python = { environment: '.venv-bridges', command: 'make bridges' };

export const tau2Program = (o: { domains: readonly Tau2Domain[]; checkout?: string | undefined }): ProcessCommand =>
  bridgeProgram({
    environment: python.environment,
    module: 'bridges.tau2',
    args: [...o.domains, ...(o.checkout === undefined ? [] : ['--checkout', o.checkout])],
  });

/** Percent as a fraction, without the round-off of a division. */
const fraction = (percent: number): number => Number((percent / 100).toFixed(4));

const arm = (name: string, airline: number, retail: number, overall: number): PublishedArm => ({
  arm: name,
  cells: [
    { group: 'airline', tasks: 50, successRate: fraction(airline) },
    { group: 'retail', tasks: 114, successRate: fraction(retail) },
    { group: OVERALL, tasks: 164, successRate: fraction(overall) },
  ],
});

const kind = defineKind({
  kind: 'tau2',
  version: '1',
  options: {
    domains: z.array(domainSchema).min(1).describe('Domains of the benchmark that are played.'),
    checkout: z.string().optional().describe('Folder of a newer upstream checkout, in place of the installed package.'),
    ...processLimits,
    ...partnerModels,
  },
  paths: ['checkout'],
  maxSilenceSeconds: maxSilenceOf,
  open: ({ domains, checkout, ...options }, _identity, context: EnvironmentContext) =>
    openProgram(tau2Program({ domains, checkout }), options, context),
});

export const tau2: EnvironmentKind = {
  ...kind,
  program: kind.read,
  python,
  folders: [{ option: 'checkout', name: 'tau2-bench checkout', holds: 'src/tau2' }],
  needsUser: true,
  checkArguments: { usage: 'DOMAIN...', example: 'retail', options: (domains) => ({ domains }) },
  published: [
    arm('base', 24.0, 36.8, 32.9),
    arm('ADP', 28.0, 34.2, 32.3),
    arm('grpo_target', 32.0, 40.4, 37.8),
    arm('AWM', 32.0, 41.2, 38.4),
    arm('GEPA', 38.0, 40.4, 39.6),
    arm('one capability', 34.0, 43.0, 40.3),
    arm('trace', 44.0, 48.2, 47.0),
    arm('union_ceiling', (100 * 29) / 50, (100 * 71) / 114, (100 * 100) / 164),
  ],
};
