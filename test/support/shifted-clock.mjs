/** Preloaded into a host's Node processes: what they take for now is `CLOCK_SHIFT_MS` off. */
import process from 'node:process';

const shift = Number(process.env.CLOCK_SHIFT_MS);
const Real = Date;
const now = () => Real.now() + shift;
globalThis.Date = new Proxy(Real, {
  construct: (target, args, self) => Reflect.construct(target, args.length > 0 ? args : [now()], self),
  apply: () => new Real(now()).toString(),
  get: (target, key) => (key === 'now' ? now : Reflect.get(target, key)),
});
