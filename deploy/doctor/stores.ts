/** Findings about the store and the servers of NATS. */
import { Context, Effect, Layer } from "effect"
import { existsSync } from "node:fs"
import { join } from "node:path"
import { embedded } from "../../runtime/embedded/index.ts"
import { Records, StorageUnavailable } from "../../runtime/index.ts"
import { connection, hasContents, Nats, type NatsApi,
  natsRegistry } from "../../runtime/nats/index.ts"
import { backendFailed, natsOptions } from "../backend/index.ts"
import { natsPayloadWantedBytes, natsRoundTripWarnMs } from "../limits.ts"
import { assertKeyOfStore, disagreementWithCluster, existingKeyringOf, keyFileOf,
  keyringOf } from "../secret-key/index.ts"
import { natsProblem, type NodeSettings, storageLocation } from "../settings/index.ts"
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
        // A running node is no fault, so that the advice of a start does not apply.
        if (failure._tag === "StorageLocked") {
          const user = failure.pid === undefined ? "another process" : `process ${failure.pid}`
          return Effect.succeed(ok("store", `${settings.dataDir} is in use by ${user}`))
        }
        const { message } = backendFailed(settings.dataDir, failure)
        const advice = "run `restante check`; restore a backup if the store is corrupted"
        return Effect.succeed(fail("store", message, advice))
      })
    )

interface StreamInfo {
  readonly cluster?: {
    readonly leader?: string | undefined
    readonly replicas?: ReadonlyArray<
      { readonly name: string; readonly current: boolean; readonly offline?: boolean | undefined }
    >
  }
  readonly config: { readonly name: string; readonly num_replicas: number }
}

/** What was found of a stream, without its name. */
const streamFinding = ({ cluster, config }: StreamInfo, isCluster: boolean): Finding => {
  const name = "streams"
  const others = cluster?.replicas ?? []
  const behind = others.filter(({ current, offline }) => !current || offline === true)
  const found = `${config.num_replicas} ${config.num_replicas === 1 ? "copy" : "copies"}`
  if (cluster?.leader === "" || cluster?.leader === undefined && isCluster) {
    return fail(name, `${found}, no leader`, "start the missing servers")
  }
  if (behind.length > 0) {
    const names = behind.map((one) => one.name).join(", ")
    return warn(name, `${found}, of which ${names} are behind or missing`, "start them")
  }
  return isCluster && config.num_replicas < 3
    ? warn(name, found, "add copies, as one failed server stops it: nats stream edit --replicas")
    : ok(name, found)
}

/** One finding for all streams of which the same was found. */
export const streamFindings = (
  streams: ReadonlyArray<StreamInfo>,
  isCluster: boolean
): ReadonlyArray<Finding> => {
  const groups = new Map<string, { readonly finding: Finding; readonly names: Array<string> }>()
  for (const stream of streams) {
    const finding = streamFinding(stream, isCluster)
    const group = groups.get(`${finding.state} ${finding.found}`) ?? { finding, names: [] }
    group.names.push(stream.config.name)
    groups.set(`${finding.state} ${finding.found}`, group)
  }
  return [...groups.values()].map(({ finding: { found, ...finding }, names }) => ({
    ...finding,
    found: `${names.join(", ")}: ${found}${names.length === 1 ? "" : " each"}`
  }))
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
  const streams: Array<StreamInfo> = []
  for await (const stream of jsm.streams.list("$KV.>")) streams.push(stream)
  return [...findings, ...streamFindings(streams, cluster !== "")]
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
