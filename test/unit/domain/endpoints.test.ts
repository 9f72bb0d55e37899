/** Which URLs an endpoint may have. */
import { ONE_SERVER, policyServerUrl } from '../../../src/domain/endpoints';

it('one policy server: several URLs are refused with what to use instead', () => {
  const { error } = policyServerUrl.safeParse('http://one:8000,http://two:8000');
  expect(error?.issues.map(({ message }) => message)).toEqual([ONE_SERVER]);
  expect(policyServerUrl.safeParse('http://one:8000').success).toBe(true);
});
