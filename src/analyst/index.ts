/** Discovery and labels: what the activities of the `selection` stage call. */
export { discover, label } from './rules';
