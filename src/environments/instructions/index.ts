export { createInstructions } from './instructions';
