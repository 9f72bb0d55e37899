/** The synthesizer's parts that activities use. */
export { calibrate, type CalibrationReport } from '../domain/calibration';
export { synthesize, type Synthesized, type SynthesizeInput } from './generators/synthesize';
export { messageHash } from './leakage';
export { openSandboxEnvironment } from './sandbox-environment';
export { selfTest } from './self-test';
export { CannotSynthesize } from './vocabulary';
