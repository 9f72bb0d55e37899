export { follow } from './follow';
export { timeText } from './format';
export { createProgressOutput, isTerminal } from './progress-output';
export { Rates } from './rates';
export { takeSnapshot, UnknownCampaign, withKnown } from './snapshot';
export { readStatus } from './status-file';
export { frameLines } from './terminal';
export { stateOf } from './tree';
