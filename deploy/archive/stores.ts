/** Opens stores for archives: one to read, or a new one to fill. */
import { Effect, Layer, type Scope } from "effect"
import { existsSync } from "node:fs"
import { join } from "node:path"
import { beginRestoring, embedded, endRestoring,
  type OpenFailure } from "../../runtime/embedded/index.ts"
import { Blobs, type BlobsApi, Records, type RecordsApi, Storage, type StorageApi,
  StorageUnavailable, StoreContents, type StoreContentsApi } from "../../runtime/index.ts"
import { assertWhole, beginRestore, type BucketsDiffer, connection, hasContents, Nats, natsBlobs,
  natsContents, natsRecords, natsRegistry, natsStorage,
  type NatsTooOld } from "../../runtime/nats/index.ts"
import { natsOptions } from "../backend/index.ts"
import { type CommandFailed, exitCodes, failedAs } from "../command-failure.ts"
import { natsProblem, type NodeSettings } from "../settings/index.ts"
import type { FileExists } from "./file.ts"
import type { ArchiveCorrupted, Header } from "./format.ts"

/** The failures of a command on archives. */
export type ArchiveFailure = OpeningFailure | ArchiveCorrupted | FileExists | Error

/** An open store. */
export interface OpenStore {
  readonly kind: Header["source"]
  readonly storage: StorageApi
  readonly contents: StoreContentsApi
  readonly records: RecordsApi
  readonly blobs: BlobsApi
}

/** A new store, to fill. */
export interface RestoreTarget extends OpenStore {
  /** Allows nodes to serve it, once everything is written and compared. */
  readonly complete: Effect.Effect<void, OpeningFailure>
}

export type OpeningFailure = OpenFailure | NatsTooOld | BucketsDiffer | CommandFailed

type Ports = Storage | StoreContents | Records | Blobs

/** The ports of a layer, for as long as the scope. */
const portsOf = Effect.fnUntraced(function*<E, R>(
  kind: OpenStore["kind"],
  layer: Layer.Layer<Ports, E, R>
): Effect.fn.Return<OpenStore, E, R | Scope.Scope> {
  const read = Effect.gen(function*() {
    return {
      kind,
      storage: yield* Storage,
      contents: yield* StoreContents,
      records: yield* Records,
      blobs: yield* Blobs
    }
  })
  return yield* Effect.provide(read, yield* Layer.build(layer))
})

/** The connection of a command, and the registry. A command connects only where a node would. */
const cluster = (settings: NodeSettings, servers: ReadonlyArray<string>) => {
  const problem = natsProblem(settings)
  const connected: Layer.Layer<Nats, StorageUnavailable | NatsTooOld | CommandFailed> = problem ===
      undefined
    ? connection(natsOptions(settings, servers, "command"))
    : Layer.effect(Nats, Effect.fail(failedAs(problem, exitCodes.configuration)))
  return Layer.provideMerge(natsRegistry, connected)
}

const natsPorts = ({ clusterBuckets: buckets }: NodeSettings) =>
  Layer.mergeAll(natsStorage({ buckets }), natsContents({ buckets }), natsRecords, natsBlobs())

const noStore = new StorageUnavailable({
  detail: "there is no store",
  advice: "correct DATA_DIR, --data-dir or NATS_URL"
})

/** Opens the store of the settings for reading; an embedded store must be stopped. */
export const openSource = Effect.fnUntraced(function*(
  settings: NodeSettings
): Effect.fn.Return<OpenStore, OpeningFailure, Scope.Scope> {
  const { dataDir, natsUrl } = settings
  if (natsUrl === undefined) {
    if (!existsSync(join(dataDir, "store"))) return yield* noStore
    return yield* portsOf("embedded", embedded(dataDir, { engine: settings.storageEngine }))
  }
  const common = yield* Layer.build(cluster(settings, natsUrl))
  return yield* Effect.gen(function*() {
    if (!(yield* hasContents(yield* Nats))) return yield* noStore
    yield* assertWhole
    return yield* portsOf("nats", natsPorts(settings))
  }).pipe(Effect.provide(common))
})

/** Opens the store of the settings for filling; it must not exist, or be filled in part. */
export const openTarget = Effect.fnUntraced(function*(
  settings: NodeSettings
): Effect.fn.Return<RestoreTarget, OpeningFailure, Scope.Scope> {
  const { dataDir, natsUrl } = settings
  if (natsUrl === undefined) {
    yield* beginRestoring(dataDir)
    const store = yield* portsOf(
      "embedded",
      embedded(dataDir, { engine: settings.storageEngine, restoring: true })
    )
    return { ...store, complete: endRestoring(dataDir) }
  }
  const common = yield* Layer.build(cluster(settings, natsUrl))
  return yield* Effect.gen(function*() {
    const complete = yield* beginRestore(settings.clusterBuckets)
    return { ...(yield* portsOf("nats", natsPorts(settings))), complete }
  }).pipe(Effect.provide(common))
})
