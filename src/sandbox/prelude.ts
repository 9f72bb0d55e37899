/**
 * The sandbox's part inside QuickJS, run before the module loads. Invariants: there is no clock and no unseeded randomness (QuickJS itself
 * has no I/O); all that is used here is taken before the module loads, and a module that replaces any of it while loading is refused; in
 * a call that harms that call only. An answer is `=` and JSON, `!` and what went wrong, or nothing for undefined.
 */
export const PRELUDE = `
delete Math.random;
(resultChars, quotedChars) => {
  const { parse, stringify } = JSON;
  const { keys, getOwnPropertyDescriptor: descriptorOf } = Object;
  const { apply } = Reflect;
  const { slice } = String.prototype;
  const textOf = String;
  const Promised = Promise;
  const used = [[globalThis, 'JSON', JSON], [JSON, 'parse', parse], [JSON, 'stringify', stringify], [Object, 'keys', keys],
    [Reflect, 'apply', apply], [Array.prototype, Symbol.iterator, Array.prototype[Symbol.iterator]]];
  const cut = (text) => (text.length > quotedChars ? apply(slice, text, [0, quotedChars]) + '…' : text);
  const tell = (thrown) => {
    try {
      if (thrown === null) return 'null was thrown, or the call is out of memory';
      if (typeof thrown !== 'object' && typeof thrown !== 'function') return cut(textOf(thrown));
      const { name, message } = thrown;
      if (typeof message !== 'string') return 'an object without a message was thrown';
      return cut(typeof name === 'string' ? cut(name) + ': ' + message : message);
    } catch {
      return 'something was thrown that cannot be read';
    }
  };
  const open = (namespace) => {
    for (let i = 0; i < used.length; i += 1) {
      const found = descriptorOf(used[i][0], used[i][1]);
      if (!found || found.value !== used[i][2]) return 'the module replaces ' + textOf(used[i][1]) + ' while it loads: leave built-ins as they are';
    }
    if (namespace instanceof Promised) return 'the module awaits at its top level: a module loads without waiting';
    return (name, args) => {
      try {
        if (name === 'exports') return '=' + stringify(keys(namespace));
        const called = namespace[name];
        if (typeof called !== 'function') return '!the module has no function ' + cut(name);
        const result = apply(called, undefined, parse(args));
        if (result instanceof Promised) return '!a promise was returned: return the value itself';
        const json = stringify(result);
        if (json === undefined) return '';
        return json.length > resultChars ? '!the result has ' + json.length + ' characters, more than ' + resultChars : '=' + json;
      } catch (thrown) {
        return '!' + tell(thrown);
      }
    };
  };
  return { tell, open };
}`;
