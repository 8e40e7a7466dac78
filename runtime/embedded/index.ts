/** The embedded backend: every port upon one database in one folder, for a node that is alone. */
import { Context, Effect, Layer } from "effect"
import { makeMemoryTransport as makeTransport } from "../memory/index.ts"
import { Blobs, Records, Storage, StoreContents, Transport } from "../ports/index.ts"
import { makeBlobs } from "./blobs/index.ts"
import { makeContents } from "./contents.ts"
import type { EngineName } from "./engine/index.ts"
import { makeRecords } from "./records/index.ts"
import { makeStorage, type OpenFailure, openStore, Sweeper } from "./storage/index.ts"

export interface EmbeddedOptions {
  /** Insists on a database; without it, it is the one the folder has, else what can be loaded. */
  readonly engine?: EngineName | undefined
  /** Set by who restores the folder from an archive. */
  readonly restoring?: boolean
}

/**
 * All ports on the folder `dataDir`, which is made when it is not there. Fails with StorageLocked
 * when another process holds it, with StorageCorrupted when anything acknowledged is missing or it
 * was restored in part, with EngineDiffers when it has another database than `engine`, with
 * EngineMissing when its database does not run here.
 */
export const embedded = (
  dataDir: string,
  { engine, restoring = false }: EmbeddedOptions = {}
): Layer.Layer<Storage | Records | Blobs | StoreContents | Transport, OpenFailure> =>
  Layer.effectContext(Effect.gen(function*() {
    const store = yield* openStore(dataDir, { restoring, wanted: engine })
    const sweeper = new Sweeper(store)
    const blobs = yield* makeBlobs(store)
    yield* Effect.promise(() => sweeper.resume())
    return Context.make(Storage, makeStorage(store, sweeper)).pipe(
      Context.add(Records, makeRecords(store)),
      Context.add(Blobs, blobs),
      Context.add(StoreContents, makeContents(store)),
      Context.add(Transport, makeTransport())
    )
  }))
export { EngineDiffers, EngineMissing, type EngineName, engineNames } from "./engine/index.ts"
export { type EmbeddedInspection, inspect } from "./inspection.ts"
export { embeddedView } from "./records/index.ts"
export { beginRestoring, endRestoring } from "./restore.ts"
