/** Findings about the machine and the settings. */
import { constants, existsSync, statSync } from "node:fs"
import { access, readFile, statfs } from "node:fs/promises"
import { totalmem } from "node:os"
import { dirname, resolve } from "node:path"
import { addressRules } from "../../actors/outbound/index.ts"
import { assertNative, floorBytes, ServerUnavailable } from "../../http/index.ts"
import { clockEarliestMs, diskMinBytes, diskWantedBytes, filesMin, filesWanted,
  memoryWantedBytes } from "../limits.ts"
import { openToOthers } from "../node/index.ts"
import { adminTokenOf, adminTokenProblem, type NodeSettings } from "../settings/index.ts"
import { fail, type Finding, finding, ok, warn } from "./finding.ts"
import type { ServiceReport } from "../service-report.ts"

const gigabytes = (bytes: number): string => `${(bytes / 1024 ** 3).toFixed(1)} GiB`

/** Whether Node and the native module of the HTTP server run here. */
export const platform = (): Finding => {
  const found = `Node ${process.version} on ${process.platform} ${process.arch}`
  try {
    assertNative()
    return ok("platform", found)
  } catch (error) {
    if (error instanceof ServerUnavailable) return fail("platform", found, error.message)
    throw error
  }
}

interface Report {
  readonly userLimits?: { readonly open_files?: { readonly soft: number | string } }
}

/** Whether the limit of open files and connections is high enough. */
export const openFiles = (): Finding => {
  // The documented shape of the report.
  const { userLimits } = process.report.getReport() as Report
  const soft = userLimits?.open_files?.soft
  const limit = soft === "unlimited" ? Infinity : Number(soft)
  if (Number.isNaN(limit)) return ok("open files", "not limited by this system")
  const found = `at most ${limit}`
  const advice =
    `every connection is an open file: allow ${filesWanted} (ulimit -n, LimitNOFILE= of ` +
    "systemd, --ulimit nofile= of Docker)"
  return finding("open files", found, advice, {
    fails: limit < filesMin,
    warns: limit < filesWanted
  })
}

/** Whether the machine, or the control group of the process, has enough memory. */
export const memory = async (): Promise<Finding> => {
  const group = await readFile("/sys/fs/cgroup/memory.max", "utf8").catch(() => "max")
  const bytes = Math.min(totalmem(), Number(group.trim()) || Infinity)
  const found = `${gigabytes(bytes)} for this process`
  const advice = "give a node 512 MiB or more; see the sizing page"
  return finding("memory", found, advice, { warns: bytes < memoryWantedBytes })
}

/** The nearest existing ancestor of a path. */
const nearestExisting = (path: string): string =>
  existsSync(path) || dirname(path) === path ? path : nearestExisting(dirname(path))

/** Whether the folder of the store can be written, and its disk has free space. */
export const dataFolder = async (settings: NodeSettings): Promise<ReadonlyArray<Finding>> => {
  const { dataDir, diskFreeMin } = settings
  const path = resolve(dataDir)
  const near = nearestExisting(path)
  const name = "data folder"
  if (!statSync(near).isDirectory()) {
    return [fail(name, `${near} is not a folder`, "set DATA_DIR to a folder, or to a new one")]
  }
  const mayWrite = await access(near, constants.W_OK | constants.X_OK).then(
    () => true,
    () => false
  )
  const open = near === path ? openToOthers(path) : undefined
  const writing = !mayWrite
    ? fail(name, `${near} cannot be written to`, "set DATA_DIR, or its owner and mode")
    : open !== undefined
    ? warn(name, path, open)
    : ok(name, near === path ? path : `${path} can be created`)
  const { bavail, blocks, bsize } = await statfs(near)
  const bytes = bavail * bsize
  // The disk of a node of a cluster has its name alone.
  const floor = settings.natsUrl === undefined
    ? floorBytes(diskFreeMin, { freeBytes: bytes, totalBytes: blocks * bsize })
    : 0
  const advice = bytes < floor
    ? "free space, or set DATA_DIR to another disk: below DISK_FREE_MIN the service stores " +
      "nothing for clients without an account (507)"
    : "free space, or set DATA_DIR to another disk: a full disk refuses deposits (507)"
  const found = `${gigabytes(bytes)} free${floor === 0 ? "" : `, floor ${gigabytes(floor)}`}`
  const space = finding("disk", found, advice, {
    fails: bytes < diskMinBytes,
    warns: bytes < Math.max(diskWantedBytes, floor)
  })
  return [writing, space]
}

/** Whether the clock is set. Other findings compare it with other clocks. */
export const clock = (nowMs: number): Finding => {
  const advice = "set the clock, and synchronize it by NTP (chrony, systemd-timesyncd)"
  const found = new Date(nowMs).toISOString()
  return finding("clock", found, advice, { fails: nowMs < clockEarliestMs })
}

/** Whether the token of the account admin is hard to guess. */
export const adminToken = (settings: NodeSettings): Finding => {
  if (adminTokenOf(settings) === undefined) {
    return ok("admin token", "not set: the first start generates one, and shows it once")
  }
  const problem = adminTokenProblem(settings)
  return finding("admin token", "set", problem ?? "", { fails: problem !== undefined })
}

const isLocal = (host: string): boolean =>
  host === "localhost" || host.endsWith(".localhost") || host.startsWith("127.") || host === "[::1]"

const setBaseUrl = "set BASE_URL to the address by which clients reach the service"

/** Whether clients can use an origin that somebody has chosen. */
const chosenBaseUrl = (origin: string): Finding => {
  const { hostname, protocol } = new URL(origin)
  return protocol === "http:" && !isLocal(hostname)
    ? warn("base URL", `${origin}, without TLS`, "put a proxy with TLS in front of the nodes")
    : ok("base URL", origin)
}

/**
 * Whether clients can use the origin of the service's URIs: that of the running service, if one
 * reports it, else that of the settings.
 */
export const baseUrl = (
  { baseUrl: own }: NodeSettings,
  report: ServiceReport | undefined
): Finding => {
  if (report === undefined) {
    return own === undefined
      ? warn(
        "base URL",
        "not set: URIs begin with http://localhost",
        `${setBaseUrl}, before the first use`
      )
      : chosenBaseUrl(own)
  }
  const { baseUrl: origin } = report
  if (own !== undefined && own !== origin) {
    const found = `URIs of the running service begin with ${origin}, but BASE_URL is ${own}`
    return warn("base URL", found, "give the service and this command the same BASE_URL")
  }
  return own === undefined && isLocal(new URL(origin).hostname)
    ? warn("base URL", `URIs of the running service begin with ${origin}`, setBaseUrl)
    : chosenBaseUrl(origin)
}

/** Whether browsers separate the content of strangers from the service. */
export const contentBaseUrl = ({ baseUrl: own, contentBaseUrl }: NodeSettings): Finding => {
  if (contentBaseUrl !== undefined) return ok("content base URL", contentBaseUrl)
  const found = "not set: content of strangers has the host name of the service"
  const advice =
    "set CONTENT_BASE_URL to an origin on another host name, preferably of another domain"
  const warns = own !== undefined && !isLocal(new URL(own).hostname)
  return finding("content base URL", found, advice, { warns })
}

/** Addresses that peers must not reach through the service. */
const protectedAddresses: ReadonlyArray<readonly [address: string, what: string]> = [
  ["169.254.169.254", "the metadata service of clouds"],
  ["127.0.0.1", "this machine itself"],
  ["10.0.0.1", "the private network 10.0.0.0/8"],
  ["172.16.0.1", "the private network 172.16.0.0/12"],
  ["192.168.0.1", "the private network 192.168.0.0/16"]
]

/** Addresses that the service may connect to for clients and peers. */
export const outbound = ({ outboundAllow }: NodeSettings): Finding => {
  const { permits } = addressRules(outboundAllow)
  const open = protectedAddresses.filter(([address]) => permits(address)).map(([, what]) => what)
  const found = outboundAllow.length === 0
    ? "public addresses only"
    : `public addresses, and ${outboundAllow.join(", ")}`
  const advice =
    `accounts that send or register can make the service connect to ${open.join(", ")}: ` +
    "allow only single hosts in OUTBOUND_ALLOW"
  return finding("outbound rules", found, advice, { warns: open.length > 0 })
}

/** Whether a collector gets traces and metrics, and its credentials travel by TLS. */
export const telemetry = (
  { otelExporterOtlpEndpoint: endpoint, otelExporterOtlpHeaders: headers }: NodeSettings
): Finding => {
  if (endpoint === undefined) return ok("telemetry", "no collector is set")
  const { hostname, origin, protocol } = new URL(endpoint)
  const advice = "others could read OTEL_EXPORTER_OTLP_HEADERS on the way: use https: for the " +
    "collector, or one on this machine"
  const warns = headers !== undefined && protocol === "http:" && !isLocal(hostname)
  return finding("telemetry", `the collector is at ${origin}`, advice, { warns })
}
