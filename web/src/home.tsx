/** The campaigns of a home, each with a link to its page. */
import { timeText } from '../../src/report/format';
import type { HomePage } from '../../src/view/api';
import { Quiet, Table } from './parts';

export const Home = ({ campaigns }: HomePage) =>
  campaigns.length === 0 ? (
    <p>
      This home has no campaign. <code>campaign run FILE</code> starts one.
    </p>
  ) : (
    <>
      <Table
        label="Campaigns"
        rows={campaigns}
        columns={[
          ['campaign', ({ name }) => <a href={`${encodeURIComponent(name)}/`}>{name}</a>],
          ['state', ({ state }) => state],
          ['last change', ({ changed }) => changed && timeText(changed)],
          ['base', ({ base }) => base],
          ['policy to ship', ({ shipped }) => shipped?.name],
          ['its success rate', ({ shipped }) => shipped?.successRate],
        ]}
      />
      <Quiet>Success rates are on the test tasks. They compare only between campaigns of one target.</Quiet>
    </>
  );
