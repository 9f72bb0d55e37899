/** Loopback addresses are reached without a proxy, whatever the user's environment says. Other addresses use the proxy that the user has set. */

const NAMES = ['localhost', '127.0.0.1', '::1'];

/** Returns whether an address HOST:PORT belongs to this machine's loopback interface. */
export const isLoopback = (address: string): boolean =>
  /^(localhost|127(\.\d{1,3}){3}|::1)$/i.test(address.replace(/:\d+$/, '').replace(/^\[(.*)\]$/, '$1'));

/** Adds loopback to the proxy exceptions of this process and its children. Tools read one or the other variable. */
export function bypassProxiesOnLoopback(env = process.env): void {
  const { no_proxy: lower, NO_PROXY: upper } = env;
  Object.assign(env, { no_proxy: withLoopback(lower || upper), NO_PROXY: withLoopback(upper || lower) });
}

function withLoopback(list = ''): string {
  const known = list.split(',').map((one) => one.trim());
  // A single * excepts all addresses; beside others it is a name.
  return known.includes('*') ? list : [...new Set([...known, ...NAMES])].filter(Boolean).join(',');
}
