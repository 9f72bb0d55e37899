/** Runs the files first that take minutes, so that the workers of Jest end together. */
import Sequencer from '@jest/test-sequencer';

const FIRST = ['test/end-to-end/', 'test/hosts/', 'test/extending/', 'test/contract/', 'test/workflows/'];
const rankOf = ({ path }) => {
  const rank = FIRST.findIndex((folder) => path.includes(folder));
  return rank < 0 ? FIRST.length : rank;
};

export default class extends Sequencer {
  sort(tests) {
    return [...super.sort(tests)].sort((one, other) => rankOf(one) - rankOf(other));
  }
}
