/** Findings about the store, the servers of NATS and the running service. */
import { Context, Effect, Layer } from "effect"
import { existsSync } from "node:fs"
import { join } from "node:path"
import { embedded } from "../../runtime/embedded/index.ts"
import { Records, StorageUnavailable } from "../../runtime/index.ts"
import { connection, hasContents, Nats, type NatsApi,
  natsRegistry } from "../../runtime/nats/index.ts"
import { backendFailed, natsOptions } from "../backend/index.ts"
import { answerBytesRead, clockFailMs, clockWarnMs, natsPayloadWantedBytes, natsRoundTripWarnMs,
  requestMs } from "../limits.ts"
import { assertKeyOfStore, disagreementWithCluster, existingKeyringOf, keyFileOf,
  keyringOf } from "../secret-key/index.ts"
import { baseUrlOf, natsProblem, type NodeSettings, storageLocation } from "../settings/index.ts"
import { fail, type Finding, finding, ok, warn } from "./finding.ts"

/** Opens the store, and decrypts what only its own key decrypts. */
const openStore = Effect.fnUntraced(function*({ dataDir, storageEngine, ...rest }: NodeSettings) {
  const keyring = yield* keyringOf({ dataDir, ...rest })
  const ports = yield* Layer.build(embedded(dataDir, { engine: storageEngine }))
  yield* assertKeyOfStore(Context.get(ports, Records), keyring)
})

/**
 * Whether the embedded store opens, with its key. It is no fault if another process uses the store,
 * or if there is none yet: only a start makes one, with its key.
 */
export const store = (settings: NodeSettings): Effect.Effect<Finding> =>
  !existsSync(join(settings.dataDir, "store"))
    ? Effect.succeed(ok("store", `none yet in ${settings.dataDir}: the first start makes it`))
    : Effect.scoped(openStore(settings)).pipe(
      Effect.as(ok("store", `${settings.dataDir} opens, with its secret key`)),
      Effect.catch((failure) => {
        const { message } = backendFailed(settings.dataDir, failure)
        const advice = "run `restante check`; restore a backup if the store is corrupted"
        return Effect.succeed(
          finding("store", message, advice, { fails: failure._tag !== "StorageLocked" })
        )
      })
    )

/** How far another clock differs from this one, as precisely as the request's round trip allows. */
const clockOffset = (name: string, aheadMs: number, uncertaintyMs: number): Finding => {
  const offsetMs = Math.max(0, Math.abs(aheadMs) - uncertaintyMs)
  if (offsetMs <= clockWarnMs) return ok(name, "agrees with this machine's")
  const found = `${(offsetMs / 1_000).toFixed(1)} s apart from this machine's`
  const advice =
    "synchronize the clocks by NTP (chrony, systemd-timesyncd): signatures and times " +
    "of receipt depend on them"
  return finding(name, found, advice, { fails: offsetMs > clockFailMs, warns: true })
}

const streamFindings = async ({ jsm, nc }: NatsApi): Promise<ReadonlyArray<Finding>> => {
  const findings: Array<Finding> = []
  const isCluster = (nc.info?.cluster ?? "") !== ""
  for await (const { cluster, config } of jsm.streams.list("$KV.>")) {
    const name = `stream ${config.name}`
    const others = cluster?.replicas ?? []
    const behind = others.filter(({ current, offline }) => !current || offline === true)
    const found = `${config.num_replicas} ${config.num_replicas === 1 ? "copy" : "copies"}`
    if (cluster?.leader === "" || cluster?.leader === undefined && isCluster) {
      findings.push(fail(name, `${found}, no leader`, "start the missing servers"))
    } else if (behind.length > 0) {
      const names = behind.map((one) => one.name).join(", ")
      findings.push(warn(name, `${found}, of which ${names} are behind or missing`, "start them"))
    } else if (isCluster && config.num_replicas < 3) {
      findings.push(
        warn(name, found, "add copies, as one failed server stops it: nats stream edit --replicas")
      )
    } else findings.push(ok(name, found))
  }
  return findings
}

const natsFindings = async (nats: NatsApi): Promise<ReadonlyArray<Finding>> => {
  const { nc, jsm } = nats
  const { cluster = "", max_payload: payload = 0, version = "unknown" } = nc.info ?? {}
  const account = await jsm.getAccountInfo()
  const roundTripMs = await nc.rtt()
  const where = cluster === "" ? "one server" : `the cluster ${cluster}`
  const findings = [
    ok("NATS", `version ${version}, ${where}, JetStream with ${account.streams} streams`),
    finding("NATS round trip", `${roundTripMs} ms`, "put nodes and servers near each other", {
      warns: roundTripMs > natsRoundTripWarnMs
    })
  ]
  if (payload < natsPayloadWantedBytes) {
    const advice = "set max_payload to 1MB: otherwise larger documents are refused"
    findings.push(warn("NATS max_payload", `${payload} bytes`, advice))
  }
  return [...findings, ...await streamFindings(nats)]
}

const copyKeyFile = "set SECRET_KEY_FILE to a copy of the file that the other nodes have"

/**
 * Whether the key of stored secrets is that of the cluster, as a start checks it. It writes
 * nothing: only a start makes the registry, and a key for servers on this machine.
 */
const clusterKeyFinding = Effect.fnUntraced(function*(settings: NodeSettings, nats: NatsApi) {
  const name = "secret key"
  const file = keyFileOf(settings)
  const hasFile = settings.secretKeyFile !== undefined || existsSync(file)
  const keyring = yield* hasFile ? keyringOf(settings) : existingKeyringOf(settings)
  const isNew = !(yield* hasContents(nats))
  if (keyring === undefined) {
    return isNew
      ? ok(name, `none yet in ${file}: the first start makes it`)
      : fail(
        name,
        `${file} does not exist, and the cluster has stored secrets under a key`,
        copyKeyFile
      )
  }
  if (isNew) return ok(name, `${keyring.currentId} in ${file}; the cluster has no key yet`)
  const compared = Effect.provide(disagreementWithCluster(keyring), natsRegistry)
  const disagreement = yield* Effect.provideService(compared, Nats, nats)
  return disagreement === undefined
    ? ok(name, `${keyring.currentId} in ${file} is known to the cluster`)
    : fail(name, disagreement.found, disagreement.advice)
})

/** Whether the key can be used; a fault of the file itself is a finding too. */
const clusterKey = (settings: NodeSettings, nats: NatsApi) =>
  Effect.catchTag(
    clusterKeyFinding(settings, nats),
    "SecretKeyUnusable",
    ({ message }) => Effect.succeed(fail("secret key", message, "see docs/how-to/secrets.md"))
  )

/** Whether the NATS servers of the cluster can be used, and the key of stored secrets with it. */
export const natsServers = (
  settings: NodeSettings,
  urls: ReadonlyArray<string>
): Effect.Effect<ReadonlyArray<Finding>> => {
  const problem = natsProblem(settings)
  if (problem !== undefined) {
    return Effect.succeed([fail("NATS", problem, "a node does not start with these settings")])
  }
  return Effect.scoped(
    Effect.gen(function*() {
      const nats = Context.get(
        yield* Layer.build(connection(natsOptions(settings, urls, "doctor"))),
        Nats
      )
      const servers = yield* Effect.tryPromise({
        try: () => natsFindings(nats),
        catch: (error) => new StorageUnavailable({ detail: `NATS: ${String(error)}` })
      })
      return [...servers, yield* clusterKey(settings, nats)]
    })
  ).pipe(Effect.catch((failure) => {
    const found = backendFailed(storageLocation(settings), failure).message
    const advice = "check NATS_URL, its user or credentials and TLS, and enable JetStream on the " +
      "servers"
    return Effect.succeed([fail("NATS", found, advice)])
  }))
}

/** Whether a service runs and responds, and how far its clock differs. */
export const service = async (settings: NodeSettings): Promise<ReadonlyArray<Finding>> => {
  const origin = baseUrlOf(settings, settings.port)
  try {
    const beforeMs = Date.now()
    const sentMs = performance.now()
    const response = await fetch(`${origin}/readyz`, { signal: AbortSignal.timeout(requestMs) })
    const text = (await response.text()).trim()
    const roundTripMs = performance.now() - sentMs
    const date = Date.parse(response.headers.get("date") ?? "")
    // The Date field has whole seconds: on average the clock is half a second ahead of it.
    const aheadMs = date + 500 - (beforeMs + roundTripMs / 2)
    const clocks = Number.isNaN(date)
      ? []
      : [clockOffset("service's clock", aheadMs, 500 + roundTripMs / 2)]
    if (response.ok) return [ok("service", `${origin} is ready`), ...clocks]
    const found = `${origin} responds ${response.status}: ${text}`
    return [warn("service", found, "see its log, and /cluster"), ...clocks]
  } catch {
    const advice = "start it (restante serve), or set BASE_URL to its address"
    return [warn("service", `nothing responds at ${origin}`, advice)]
  }
}

/** The start of a body as text: that of somebody else's service may have any size. */
const startOf = async (response: Response): Promise<string> => {
  const decoder = new TextDecoder()
  let text = ""
  let sizeBytes = 0
  for await (const bytes of response.body ?? []) {
    text += decoder.decode(bytes, { stream: true })
    sizeBytes += bytes.length
    if (sizeBytes >= answerBytesRead) break
  }
  return text
}

/** Whether CONTENT_BASE_URL reaches a service that knows it: it serves content and nothing else. */
export const contentOrigin = async (
  { contentBaseUrl }: NodeSettings
): Promise<ReadonlyArray<Finding>> => {
  if (contentBaseUrl === undefined) return []
  const name = "content origin"
  try {
    const response = await fetch(`${contentBaseUrl}/livez`, {
      signal: AbortSignal.timeout(requestMs)
    })
    const isOwn = (await startOf(response)).includes(`${contentBaseUrl} only serves content`)
    if (response.status === 404 && isOwn) {
      return [ok(name, `${contentBaseUrl} serves content alone`)]
    }
    const what = response.status === 404
      ? "404, but not as an origin of content does"
      : `${response.status} instead of 404`
    const found = `${contentBaseUrl}/livez responds ${what}`
    const advice = "let the proxy pass on Host or X-Forwarded-Host, name it in TRUSTED_PROXIES, " +
      "and give every node the same CONTENT_BASE_URL"
    return [fail(name, found, advice)]
  } catch {
    const advice = "let CONTENT_BASE_URL lead to the service, as BASE_URL does"
    return [warn(name, `nothing responds at ${contentBaseUrl}`, advice)]
  }
}
