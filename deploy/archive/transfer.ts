/** The archive of a service that runs, as it sends it: checked while it is saved. */
import { Effect, Redacted, type Scope } from "effect"
import { createHash } from "node:crypto"
import { failpoint } from "../backend/index.ts"
import { refusedBy, type RemoteService, unreachable } from "../cli/service/index.ts"
import { CommandFailed } from "../command-failure.ts"
import { trailerBytesMax } from "../limits.ts"
import type { NodeSettings } from "../settings/index.ts"
import { decoderOf, save, verify } from "./file.ts"
import { ArchiveCorrupted, Encoder, type Trailer, trailerOf } from "./format.ts"
import { type ArchivePart, Counter, differences } from "./parts.ts"
import { archiveOf, drain, partsOf } from "./store-reader.ts"
import { fill } from "./store-writer.ts"
import { type ArchiveFailure, type BackedUp, type Filling, type Opened, openSource,
  openTarget } from "./stores.ts"

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

/* Backing up, restoring and moving stores, and comparing what came of it. */

const LINE_FEED = 0x0a

/** Goes along with an archive, to tell at its end whether it is whole. */
class Ending {
  private readonly hash = createHash("sha256")
  private held: Buffer = Buffer.alloc(0)
  bytes = 0

  take(piece: Uint8Array): void {
    this.bytes += piece.length
    this.held = Buffer.concat([this.held, piece])
    const known = Math.max(0, this.held.length - trailerBytesMax)
    this.hash.update(this.held.subarray(0, known))
    this.held = this.held.subarray(known)
  }

  /** Throws {@link ArchiveCorrupted}. */
  end(): Trailer {
    const last = this.held.lastIndexOf(LINE_FEED, -2) + 1
    this.hash.update(this.held.subarray(0, last))
    const trailer = trailerOf(this.held.subarray(last))
    if (trailer.sha256 === this.hash.digest("hex")) return trailer
    throw new ArchiveCorrupted({ detail: "its checksum differs" })
  }
}

const asked = async (
  remote: RemoteService,
  signal: AbortSignal
): Promise<ReadableStream<Uint8Array>> => {
  const { authorization, baseUrl } = remote
  const response = await fetch(`${baseUrl}/archive`, {
    headers: {
      accept: "application/json",
      ...authorization === undefined ? {} : { authorization: Redacted.value(authorization) }
    },
    redirect: "manual",
    signal
  })
  if (response.status !== 200 || response.body === null) {
    throw refusedBy(response.status, await response.text())
  }
  return response.body
}

/** Saves the archive of a running service into a file, or `-`; `seen` is told the bytes so far. */
export const backUpRunning = Effect.fnUntraced(function*(
  remote: RemoteService,
  path: string,
  plain: boolean,
  seen: (bytes: number) => void
): Effect.fn.Return<BackedUp, ArchiveFailure> {
  const ending = new Ending()
  let trailer: Trailer | undefined
  async function* watched(signal: AbortSignal): AsyncGenerator<Uint8Array> {
    try {
      for await (const piece of await asked(remote, signal)) {
        ending.take(piece)
        seen(ending.bytes)
        yield piece
      }
    } catch (error) {
      throw error instanceof CommandFailed ? error : unreachable(remote, error)
    }
    // Before the file bears its name.
    trailer = ending.end()
  }
  const fileBytes = yield* Effect.tryPromise({
    try: (signal) => save(path, watched(signal), plain),
    catch: (error) => error instanceof Error ? error : new Error(String(error))
  })
  if (trailer === undefined) throw new Error("an archive was saved without its end")
  const { counts, unsteady } = trailer
  return { counts, unsteady, lost: 0, fileBytes }
})
