/** `campaign doctor`: what this machine has and lacks, and how to get it. Invariant: nothing stays running, and nothing is changed but that a home gets what a vLLM is tried with. */
import type { Campaign } from '../domain/campaign';
import { checkBridge, checkTarget } from './checks/target';
import { checkAdapters, checkModel, checkPolicyServer, checkTokens } from './checks/base-model';
import { failed, passed, type Check } from '../checks/check';
import {
  checkBuild,
  checkGpus,
  checkHome,
  checkMemory,
  checkNode,
  checkPort,
  checkPython,
  checkTemporal,
} from './checks/machine';
import { checkLanguageModels, checkPartners } from './checks/language-models';
import { UserError } from './errors';
import { wrap } from '../terminal';
import { type PortOptions, temporalPort, uiPort } from './ports';
import { policyServerService } from './run/services';
import { pythonPath, type Home } from './project';
import { Service, type ServiceSpec } from './run/service';

interface DoctorOptions {
  home: Home;
  ports: PortOptions;
  /** What this campaign needs is looked at as well; its embedded policy server is started once. */
  campaign?: Campaign;
}

/** All checks, in the order of a campaign's needs. */
export async function examine({ home, ports, campaign }: DoctorOptions): Promise<Check[]> {
  const python = await checkPython();
  const machine = [
    checkNode(),
    checkMemory(),
    checkHome(home, campaign),
    checkBuild(),
    ...python,
    await checkTemporal(),
    await checkPort({ port: temporalPort, asked: ports.temporalPort }),
    await checkPort({ port: uiPort, asked: ports.uiPort }),
  ];
  if (!campaign) return machine;
  const pythonRuns = python.every(({ ok }) => ok);
  const model = await checkModel(campaign, pythonRuns ? pythonPath() : undefined);
  const tokens = model.ok && pythonRuns ? await checkTokens({ campaign, home }) : undefined;
  const gpus = await checkGpus(campaign);
  const server = await checkPolicyServer(campaign);
  const adapters =
    server.ok && model.ok && pythonRuns ? await checkAdapters({ campaign, home, python: pythonPath() }) : undefined;
  const parts = [
    ...machine,
    model,
    ...checkBridge(campaign),
    ...(await checkTarget(campaign, home)),
    ...(tokens ? [tokens] : []),
    ...(await checkPartners(campaign)),
    ...(await checkLanguageModels(campaign)),
    server,
    ...(adapters ? [adapters] : []),
    ...(gpus ? [gpus] : []),
  ];
  const { policyServer, baseModel } = campaign;
  if (policyServer.kind !== 'embedded' || !model.ok || !pythonRuns) return parts;
  return [...parts, await tryPolicyServer(policyServerService({ ...policyServer, model: baseModel.path }).spec, home)];
}

/** Starts the embedded policy server with the campaign's model and stops it again. */
async function tryPolicyServer(spec: ServiceSpec, home: Home): Promise<Check> {
  const name = 'policy server start';
  const started = Date.now();
  const service = new Service(spec, home.logs);
  try {
    await service.start();
    return passed(name, `ready after ${((Date.now() - started) / 1000).toFixed(1)} s`);
  } catch (error) {
    if (!(error instanceof UserError)) throw error;
    return failed(name, error.evidence.at(-1) ?? error.message, `read ${home.logs}/policy-server.log`);
  } finally {
    await service.stop();
  }
}

/** Columns that what is said of a check has at least. */
const NARROWEST = 30;

/** One line per check; what is missing says how to get it. Longer than the terminal is wide (`columns`), it goes on under itself. */
export const doctorLines = (checks: Check[], columns?: number): string[] => {
  const width = Math.max(...checks.map(({ name }) => name.length));
  return checks.map(({ name, ok, warning, detail, fix }) => {
    const head = `${warning ? 'warning' : ok ? 'ok     ' : 'missing'}  ${name.padEnd(width)}  `;
    const indent = columns !== undefined && columns < head.length + NARROWEST ? 2 : head.length;
    return wrap(`${head}${detail}${fix ? `; ${fix}` : ''}`, columns, { indent }).join('\n');
  });
};
