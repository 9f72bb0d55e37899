/** Loopback addresses are reached without a proxy, whatever the user's environment says. Other addresses use the proxy that the user has set. */

const NAMES = ['localhost', '127.0.0.1', '::1'];

/** Whether an address HOST:PORT is of this machine's loopback interface. */
export const isLoopback = (address: string): boolean =>
  /^(localhost|127(\.\d{1,3}){3}|::1)$/i.test(address.replace(/:\d+$/, '').replace(/^\[(.*)\]$/, '$1'));

/** Adds loopback to the exceptions from proxies of this process and of those that it starts. Tools read one or the other variable. */
export function bypassProxiesOnLoopback(env = process.env): void {
  const { no_proxy: lower, NO_PROXY: upper } = env;
  Object.assign(env, { no_proxy: withLoopback(lower || upper), NO_PROXY: withLoopback(upper || lower) });
}

function withLoopback(list = ''): string {
  const known = list.split(',').map((one) => one.trim());
  // Alone it excepts all addresses; beside others it is a name.
  return known.includes('*') ? list : [...new Set([...known, ...NAMES])].filter(Boolean).join(',');
}

/** The variable whose proxy the gRPC client uses for addresses beyond loopback; undefined where none is set. */
export const proxyVariable = (): string | undefined =>
  ['grpc_proxy', 'https_proxy', 'http_proxy'].find((name) => process.env[name]);
