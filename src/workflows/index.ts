/** What the control worker registers. */
export { campaign } from './campaign';
export { capability } from './capability';
export { grpoTarget } from './arms';
