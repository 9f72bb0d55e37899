import { Fragment } from 'preact';
import { visible } from '../../src/report/format';

/** Data from a campaign. All texts are made harmless here, once: what turns the direction of writing or is not seen is spelled out. */
export const parsed = <T,>(text: string): T =>
  JSON.parse(text, (_, value: unknown) => (typeof value === 'string' ? visible(value) : value)) as T;

/** Long names may break at their joints. */
export const Text = ({ text }: { text: string }) => (
  <>
    {text.split(/(?<=\w[_+])(?=\w)/).map((part, n) => (
      <Fragment key={n}>
        {n > 0 && <wbr />}
        {part}
      </Fragment>
    ))}
  </>
);
