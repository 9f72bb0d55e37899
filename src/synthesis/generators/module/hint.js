/**
 * What a hinted agent is told of an instance, in words of the target's policy and rules. Invariant: it says what kind of thing to do; no call and
 * no value that has to be found out is in it.
 */
import { mainOf, memberOf } from './members.js';
import { nameOf, writeOf } from './records.js';

/** @typedef {import('../params').Params} Params */
/** @typedef {import('../instance').Instance} Instance */

/** @type {(params: Params, state: Instance) => string} */
export function hintOf(params, { seed, requests }) {
  const { world, named } = params;
  const { family, plan, turned } = memberOf(params, seed);
  const main = mainOf(requests, turned);
  const several = requests.length > 1;
  const plans = Object.values(family.plans);
  const hints = [];
  if (plan.keyMissing && world.ask) hints.push(`ask first : ${world.ask.question}`);
  const rule = writeOf(params, main.write).precondition;
  // Whether it is what the instances differ in.
  if (rule && new Set(plans.map(({ forbidden }) => forbidden)).size > 1) {
    const field = several && main.record ? `${rule.field} of the ${nameOf(params, main.record)}` : rule.field;
    hints.push(
      plan.forbidden ? `the ${field} does not allow it : say ${rule.denial} .` : `the ${field} allows it : do it .`,
    );
  }
  if (several && 'both' in family.plans)
    hints.push(plan.forbidden ? 'do the other thing that is asked .' : 'do all things that are asked .');
  else if (several) hints.push(`${requests.length} things are asked : do all of them .`);
  if (plan.similar) hints.push(`look at all words of the ${named} : more than one is like it .`);
  if (plan.marker)
    for (const argument of writeOf(params, main.write).arguments)
      if (argument.from === 'computed')
        hints.push(`the ${argument.field} is not what to use as it is : ${argument.marker} .`);
  if (plan.question) hints.push(`tell the ${world.tell?.field} too .`);
  return hints.join(' ') || 'do what is asked , and no more .';
}
