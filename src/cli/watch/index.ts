export { follow } from './follow';
export { createNarrator, isTerminal } from './narrator';
export { Rates } from './rates';
export { takeSnapshot } from './snapshot';
export { frameLines } from './terminal';
