/** Backing up, restoring and moving stores, and comparing what came of it. */
import { Effect, type Scope } from "effect"
import { archiveOf, type ArchivePart, Counter, decoderOf, differences, drain, Encoder, fill,
  partsOf, save, verify } from "../archive/index.ts"
import { failpoint } from "../backend/index.ts"
import type { NodeSettings } from "../settings/index.ts"
import { type ArchiveFailure, type BackedUp, type Filling, type Opened, openSource,
  openTarget } from "./stores.ts"

export { rowsOf } from "../archive/index.ts"
export { placeOf } from "../backend/index.ts"
export { explained } from "./failure-messages.ts"
export { backUpRunning } from "./running-backup.ts"

/** What is being done, and what of it is done; called for every part. */
export type Seen = (step: string, counter: Counter) => void

/** A store that was filled: what was to be written, and what was read back. */
export interface Filled {
  readonly rows: ReturnType<typeof differences>
  readonly same: boolean
}

/** Runs what may take long; interrupted, it ends at its next part. */
const long = <A>(work: (alive: () => void) => Promise<A>): Effect.Effect<A, ArchiveFailure> =>
  Effect.tryPromise({
    try: (signal) => work(() => signal.throwIfAborted()),
    // Whatever was thrown: the tagged failures are Errors too.
    catch: (error) => error instanceof Error ? error : new Error(String(error))
  })

/** Writes all of the store that the settings name into a file, or `-`. */
export const backUp = Effect.fnUntraced(function*(
  settings: NodeSettings,
  path: string,
  plain: boolean,
  seen: Seen
): Effect.fn.Return<BackedUp, ArchiveFailure, Scope.Scope> {
  const source = yield* openSource(settings)
  const encoder = new Encoder()
  const fileBytes = yield* long((alive) => {
    const pieces = archiveOf(source, encoder)
    const watched = async function*(): AsyncGenerator<Uint8Array> {
      for await (const piece of pieces) {
        alive()
        seen("backing up", encoder.counter)
        yield piece
      }
    }
    return save(path, watched(), plain)
  })
  const { counts, lost, unsteady } = encoder.counter
  return { counts, unsteady, lost, fileBytes }
})

/** What the store holds, read to its last byte. */
const countsOf = async (store: Opened, step: string, alive: () => void, seen: Seen) => {
  const counter = new Counter()
  await drain(partsOf(store), (part) => {
    alive()
    counter.take(part)
    seen(step, counter)
  })
  return counter.counts
}

/** Fills a new store and compares; only when all is the same it can be served. */
const fillAndCompare = Effect.fnUntraced(function*(
  target: Filling,
  parts: AsyncIterable<ArchivePart>,
  counter: Counter,
  seen: Seen
): Effect.fn.Return<Filled, ArchiveFailure> {
  const step = failpoint(process.env["RESTANTE_FAILPOINT"])
  yield* long((alive) =>
    fill(target, parts, (part) => {
      alive()
      if (part._tag === "Actor") step?.("committed", part.address)
      seen("writing", counter)
    })
  )
  const there = yield* long((alive) => countsOf(target, "reading back", alive, seen))
  const rows = differences(counter.counts, there)
  const same = rows.every((row) => row.same)
  if (same) yield* target.done
  return { rows, same }
})

/** Fills the store that the settings name from an archive, which is verified before. */
export const restore = Effect.fnUntraced(function*(
  settings: NodeSettings,
  path: string,
  seen: Seen
): Effect.fn.Return<Filled, ArchiveFailure, Scope.Scope> {
  yield* long(async (alive) => {
    const counter = new Counter()
    await verify(path, (part) => {
      alive()
      counter.take(part)
      seen("verifying", counter)
    })
  })
  const target = yield* openTarget(settings)
  const decoder = decoderOf(path)
  return yield* fillAndCompare(target, decoder.parts(), decoder.counter, seen)
})

/** Fills one store from another: a new cluster from a stopped embedded store. */
export const migrate = Effect.fnUntraced(function*(
  from: NodeSettings,
  to: NodeSettings,
  seen: Seen
): Effect.fn.Return<Filled, ArchiveFailure, Scope.Scope> {
  const source = yield* openSource(from)
  const target = yield* openTarget(to)
  const counter = new Counter()
  const counted = async function*(): AsyncGenerator<ArchivePart> {
    for await (const part of partsOf(source)) {
      counter.take(part)
      yield part
    }
  }
  return yield* fillAndCompare(target, counted(), counter, seen)
})
