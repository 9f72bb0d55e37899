/** The module that plug-ins import (docs/extending.md). A plug-in is a module that exports its name, its version and kinds. */
import type { AnalystKind } from './analyst/analyst';
import type { EnvironmentKind } from './environments/kinds';
import type { RouterKind } from './routing/router';
import type { SynthesizerKind } from './synthesis/synthesizer';

export interface Plugin {
  readonly name: string;
  /** Changes whenever its kinds make something else of the same inputs: it is in the keys of their results. */
  readonly version: string;
  readonly targets?: readonly EnvironmentKind[];
  readonly analysts?: readonly AnalystKind[];
  readonly synthesizers?: readonly SynthesizerKind[];
  readonly routers?: readonly RouterKind[];
}

export { z } from 'zod';
export * from './analyst/analyst';
export type { CalibrationReport } from './domain/calibration';
export { capabilityNameSchema, type Discovery, type Label, type LabelPass } from './domain/capability';
export {
  type Action,
  type Environment,
  type EnvironmentDescription,
  type Episode,
  type Evaluation,
  type Reference,
  type Split,
  type StepResult,
  type StopReason,
} from './domain/environment';
export { isFailure, OutsideFailure } from './domain/failures';
export { defineKind, type Identity, type Kind } from './domain/kinds';
export {
  agentView,
  type AssistantMessage,
  type JsonSchema,
  jsonText,
  type Message,
  type ToolCall,
  type ToolSchema,
} from './domain/messages';
export { isSuccess, type ScoredRollout } from './domain/rollout';
export { hash, seededRandom } from './domain/seeds';
export { mean, populationStd } from './domain/statistics';
export { valueProblem } from './environments/json-schema';
export type { EnvironmentKind };
export * from './routing/router';
export { type Vocabulary, vocabularyOf } from './sandbox/vocabulary';
export * from './synthesis/synthesizer';
