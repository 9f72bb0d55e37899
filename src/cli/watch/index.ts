export { follow } from './follow';
export { createProgressOutput, isTerminal } from './progress-output';
export { Rates } from './rates';
export { takeSnapshot } from './snapshot';
export { frameLines } from './terminal';
