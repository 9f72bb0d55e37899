/** The counting environment as a kind that a campaign can pick. */
import { defineKind } from '../../src/domain/kinds';
import type { EnvironmentKind } from '../../src/environments/kinds';
import { countingEnvironment } from './counting-environment';

export const createEnvironmentKind = (): EnvironmentKind =>
  defineKind({ kind: 'counting', version: '1', options: {}, open: () => countingEnvironment({ maxSteps: 40 }) });
