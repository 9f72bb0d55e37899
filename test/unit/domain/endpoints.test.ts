/** Which URLs an endpoint may have. */
import { blockedPorts, ONE_SERVER, policyServerUrl, urlField } from '../../../src/domain/endpoints';

// eslint-disable-next-line @typescript-eslint/no-require-imports -- has no types
const { badPorts } = require('undici/lib/web/fetch/constants') as { badPorts: string[] };

it('no port that fetch refuses', () => {
  expect(blockedPorts.map(String).sort()).toEqual([...badPorts].sort());
  expect(urlField.safeParse('http://127.0.0.1:9/v1').error?.issues[0]?.message).toBe(
    'a URL with another port: 9 is of another protocol, and HTTP clients refuse it',
  );
  for (const url of ['http://[::1]:6000', 'https://host:10080/v1']) expect(urlField.safeParse(url).success).toBe(false);
  for (const url of ['http://[::1]:8000', 'https://host/v1:9', 'http://host:8009'])
    expect(urlField.safeParse(url).success).toBe(true);
});

it('one policy server: several URLs are refused with what to use instead', () => {
  const { error } = policyServerUrl.safeParse('http://one:8000,http://two:8000');
  expect(error?.issues.map(({ message }) => message)).toEqual([ONE_SERVER]);
  expect(policyServerUrl.safeParse('http://one:8000').success).toBe(true);
});
