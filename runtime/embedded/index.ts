/** The embedded backend: every port upon one RocksDB in one folder, for a node that is alone. */
import { Context, Effect, Layer } from "effect"
import { Blobs } from "../ports/blobs.ts"
import { Contents } from "../ports/contents.ts"
import { Records } from "../ports/records.ts"
import { Storage } from "../ports/storage.ts"
import { Transport } from "../ports/transport.ts"
import { makeBlobs } from "./blobs.ts"
import { makeContents } from "./contents.ts"
import { makeRecords } from "./records.ts"
import { makeStorage } from "./storage.ts"
import { type OpenFailure, openStore } from "./store.ts"
import { Sweeper } from "./sweep.ts"
import { makeTransport } from "./transport.ts"

export { inspect, type Inspection } from "./inspect.ts"
export { beginRestoring, endRestoring } from "./restoring.ts"

/**
 * All ports on the folder `dataDir`, which is made when it is not there. Fails with StorageLocked
 * when another process holds it, with StorageDamaged when anything acknowledged is missing or it
 * was restored in part; `restoring` is set by who restores it.
 */
export const embedded = (
  dataDir: string,
  { restoring = false }: { readonly restoring?: boolean } = {}
): Layer.Layer<Storage | Records | Blobs | Contents | Transport, OpenFailure> =>
  Layer.effectContext(Effect.gen(function*() {
    const store = yield* openStore(dataDir, restoring)
    const sweeper = new Sweeper(store)
    const blobs = yield* makeBlobs(store)
    yield* Effect.promise(() => sweeper.resume())
    return Context.make(Storage, makeStorage(store, sweeper)).pipe(
      Context.add(Records, makeRecords(store)),
      Context.add(Blobs, blobs),
      Context.add(Contents, makeContents(store)),
      Context.add(Transport, makeTransport())
    )
  }))
