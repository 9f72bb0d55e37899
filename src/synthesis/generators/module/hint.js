/**
 * What a hinted agent is told of an instance, in words of the target's policy and rules. Invariant: it says what kind of thing to do; no call and
 * no value that has to be found out is in it.
 */
import { planOf, writeOf } from './records.js';

/** @typedef {import('../params').Params} Params */
/** @typedef {import('../instance').Instance} Instance */

/** @type {(params: Params, state: Instance) => string} */
export function hintOf(params, state) {
  const { world, special, twin, named } = params;
  const { requests } = state;
  const plan = planOf(params, state.special);
  /** Whether it is what the instances differ in. @type {(field: keyof typeof plan) => boolean} */
  const matters = (field) => special[field] !== twin[field];
  const hints = [];
  if (plan.keyMissing && world.ask) hints.push(`ask first : ${world.ask.question}`);
  const rule = writeOf(params, requests[0].write).precondition;
  if (rule && matters('forbidden'))
    hints.push(
      plan.forbidden
        ? `the ${rule.field} does not allow it : say ${rule.denial} .`
        : `the ${rule.field} allows it : do it .`,
    );
  if (plan.requests > 1) hints.push(`${plan.requests} things are asked : do all of them .`);
  if (plan.similar) hints.push(`look at all words of the ${named} : more than one is like it .`);
  if (plan.marker)
    for (const argument of writeOf(params, requests[0].write).arguments)
      if (argument.from === 'computed')
        hints.push(`the ${argument.field} is not what to use as it is : ${argument.marker} .`);
  if (plan.question) hints.push(`tell the ${world.tell?.field} too .`);
  return hints.join(' ') || 'do what is asked , and no more .';
}
