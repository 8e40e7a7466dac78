/** The embedded backend: every port on one database in one folder, for a single node. */
import { Context, Effect, Layer } from "effect"
import { makeMemoryTransport } from "../memory/index.ts"
import { Blobs, Records, Storage, StoreContents, Transport } from "../ports/index.ts"
import { makeBlobs } from "./blobs/index.ts"
import { makeContents } from "./contents.ts"
import type { EngineName } from "./engine/index.ts"
import { makeRecords } from "./records/index.ts"
import { LogSweeper, makeStorage, type OpenFailure, openStore } from "./storage/index.ts"

export { EngineDiffers, EngineMissing, type EngineName, engineNames } from "./engine/index.ts"
export { flushFolder, makeFolders } from "./folders.ts"
export { type EmbeddedInspection, inspect } from "./inspection.ts"
export { embeddedView } from "./records/index.ts"
export { beginRestoring, endRestoring } from "./restore.ts"
export type { OpenFailure } from "./storage/index.ts"

/** How the store of a folder is opened. */
export interface EmbeddedOptions {
  /** The database that the folder must have; by default the one it has, else what can be loaded. */
  readonly engine?: EngineName | undefined
  /** The caller fills the folder from an archive. */
  readonly restoring?: boolean
}

/**
 * All ports on the folder `dataDir`, created when missing. Fails with StorageLocked when another
 * process has it open, StorageCorrupted when it lacks acknowledged commits or was restored in part,
 * StoreFormatUnsupported when another version wrote it, EngineDiffers when it has another database
 * than `engine`, and EngineMissing when its database does not run on this machine.
 */
export const embedded = (
  dataDir: string,
  { engine, restoring = false }: EmbeddedOptions = {}
): Layer.Layer<Storage | Records | Blobs | StoreContents | Transport, OpenFailure> =>
  Layer.effectContext(Effect.gen(function*() {
    const store = yield* openStore(dataDir, { restoring, wanted: engine })
    const sweeper = new LogSweeper(store)
    const blobs = yield* makeBlobs(store)
    yield* Effect.promise(() => sweeper.resume())
    return Context.make(Storage, makeStorage(store, sweeper)).pipe(
      Context.add(Records, makeRecords(store)),
      Context.add(Blobs, blobs),
      Context.add(StoreContents, makeContents(store)),
      Context.add(Transport, makeMemoryTransport())
    )
  }))
