/** All scenarios, by what is done to the campaign. */
import type { Scenario } from '../../support/faults-scenario';
import { cancels } from './cancels';
import { damages } from './damage';
import { databases } from './database';
import { disks } from './disk';
import { interrupts } from './interrupts';
import { kills } from './kills';
import { mixtures } from './mixture';
import { paidFor } from './paid';
import { policyServers } from './policy-server';
import { searches } from './search';
import { stops } from './stops';
import { twoHomes } from './two-homes';

export const scenarios: Scenario[] = [
  ...kills,
  ...cancels,
  ...paidFor,
  ...searches,
  ...stops,
  ...interrupts,
  ...policyServers,
  twoHomes,
  ...disks,
  ...damages,
  ...databases,
  ...mixtures,
];
