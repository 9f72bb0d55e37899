export { createInstructions, instructionsParameters } from './instructions';
