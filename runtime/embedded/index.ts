/** The embedded backend: every port upon one RocksDB in one folder, for a node that is alone. */
import { Context, Effect, Layer } from "effect"
import { Blobs } from "../ports/blobs.ts"
import { Records } from "../ports/records.ts"
import { Storage } from "../ports/storage.ts"
import { Transport } from "../ports/transport.ts"
import { makeBlobs } from "./blobs.ts"
import { makeRecords } from "./records.ts"
import { makeStorage } from "./storage.ts"
import { type OpenFailure, openStore } from "./store.ts"
import { Sweeper } from "./sweep.ts"
import { makeTransport } from "./transport.ts"

export { inspect, type Inspection } from "./inspect.ts"

/**
 * All ports on the folder `dataDir`, which is made when it is not there. Fails with StorageLocked
 * when another process holds it, with StorageDamaged when anything acknowledged is missing.
 */
export const embedded = (
  dataDir: string
): Layer.Layer<Storage | Records | Blobs | Transport, OpenFailure> =>
  Layer.effectContext(Effect.gen(function*() {
    const store = yield* openStore(dataDir)
    const sweeper = new Sweeper(store)
    const blobs = yield* makeBlobs(store)
    yield* Effect.promise(() => sweeper.resume())
    return Context.make(Storage, makeStorage(store, sweeper)).pipe(
      Context.add(Records, makeRecords(store)),
      Context.add(Blobs, blobs),
      Context.add(Transport, makeTransport())
    )
  }))
