/** Opens stores for archives: to read what there is, or to fill a new one. */
import { Effect, Layer, type Scope } from "effect"
import { existsSync } from "node:fs"
import { join } from "node:path"
import { beginRestoring, embedded, endRestoring,
  type OpenFailure } from "../../runtime/embedded/index.ts"
import { Blobs, type BlobsApi, Records, type RecordsApi, Storage, type StorageApi,
  StorageUnavailable, StoreContents, type StoreContentsApi,
  type StoreFormatUnsupported } from "../../runtime/index.ts"
import * as restoring from "../../runtime/nats/contents/restore.ts"
import { type BucketsDiffer, connection, Nats, natsBlobs, natsContents, natsRecords, natsRegistry,
  natsStorage, type NatsTooOld } from "../../runtime/nats/index.ts"
import { natsOptions } from "../backend/index.ts"
import type { NodeSettings } from "../settings/index.ts"
import type { FileThere } from "./file.ts"
import type { ArchiveCorrupted, Header } from "./format.ts"
import type { Counts } from "./parts.ts"

/** An archive that was written. */
export interface BackedUp {
  readonly counts: Counts
  /** Actors that were changed again and again while they were read. */
  readonly unsteady: number
  /** Blobs that were lost while they were read, as they were removed; a service does not tell. */
  readonly lost: number
  /** Bytes of the file. */
  readonly fileBytes: number
}

/** What an archive command came to nothing by. */
export type ArchiveFailure = OpeningFailure | ArchiveCorrupted | FileThere | Error

/** An open store. */
export interface Opened {
  readonly kind: Header["source"]
  readonly storage: StorageApi
  readonly contents: StoreContentsApi
  readonly records: RecordsApi
  readonly blobs: BlobsApi
}

/** A new store that is being filled. */
export interface Filling extends Opened {
  /** From then on it can be served: to be called when everything is written and compared. */
  readonly done: Effect.Effect<void, OpeningFailure>
}

export type OpeningFailure = OpenFailure | NatsTooOld | BucketsDiffer

type Ports = Storage | StoreContents | Records | Blobs

/** The ports of a layer, for as long as the scope. */
const portsOf = Effect.fnUntraced(function*<E, R>(
  kind: Opened["kind"],
  layer: Layer.Layer<Ports, E, R>
): Effect.fn.Return<Opened, E, R | Scope.Scope> {
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

/** The connection of a command, and the registry. */
const cluster = (settings: NodeSettings, servers: ReadonlyArray<string>) =>
  Layer.provideMerge(natsRegistry, connection(natsOptions(settings, servers, "command")))

const natsPorts = (
  settings: NodeSettings
): Layer.Layer<Ports, StorageUnavailable | StoreFormatUnsupported | BucketsDiffer, Nats> =>
  Layer.mergeAll(
    natsStorage({ buckets: settings.clusterBuckets }),
    natsContents({ buckets: settings.clusterBuckets }),
    natsRecords,
    natsBlobs()
  )

/** The store that the settings name, to read it: the embedded one must be stopped. */
export const openSource = Effect.fnUntraced(function*(
  settings: NodeSettings
): Effect.fn.Return<Opened, OpeningFailure, Scope.Scope> {
  const { dataDir, natsUrl } = settings
  if (natsUrl === undefined) {
    if (!existsSync(join(dataDir, "store"))) {
      return yield* new StorageUnavailable({ detail: "there is no store" })
    }
    return yield* portsOf("embedded", embedded(dataDir, { engine: settings.storageEngine }))
  }
  const common = yield* Layer.build(cluster(settings, natsUrl))
  return yield* Effect.gen(function*() {
    if (!(yield* restoring.hasContents(yield* Nats))) {
      return yield* new StorageUnavailable({ detail: "there is no store" })
    }
    yield* restoring.assertWhole
    return yield* portsOf("nats", natsPorts(settings))
  }).pipe(Effect.provide(common))
})

/** The store that the settings name, to fill it: there must be none, or one filled in part. */
export const openTarget = Effect.fnUntraced(function*(
  settings: NodeSettings
): Effect.fn.Return<Filling, OpeningFailure, Scope.Scope> {
  const { dataDir, natsUrl } = settings
  if (natsUrl === undefined) {
    yield* beginRestoring(dataDir)
    const store = yield* portsOf(
      "embedded",
      embedded(dataDir, { engine: settings.storageEngine, restoring: true })
    )
    return { ...store, done: endRestoring(dataDir) }
  }
  const common = yield* Layer.build(cluster(settings, natsUrl))
  return yield* Effect.gen(function*() {
    const done = yield* restoring.beginRestore(settings.clusterBuckets)
    return { ...(yield* portsOf("nats", natsPorts(settings))), done }
  }).pipe(Effect.provide(common))
})
