/** The archive of a service that runs, as it sends it: checked while it is saved. */
import { Effect, Redacted } from "effect"
import { createHash } from "node:crypto"
import { ArchiveDamaged, save, type Trailer, trailerOf } from "../archive/index.ts"
import { refusedBy, type RemoteService, unreachable } from "../cli/service/index.ts"
import { CommandFailed } from "../command-failure.ts"
import { trailerBytesMax } from "../limits.ts"
import type { ArchiveFailure, BackedUp } from "./stores.ts"

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

  /** Throws {@link ArchiveDamaged}. */
  end(): Trailer {
    const last = this.held.lastIndexOf(LINE_FEED, -2) + 1
    this.hash.update(this.held.subarray(0, last))
    const trailer = trailerOf(this.held.subarray(last))
    if (trailer.sha256 === this.hash.digest("hex")) return trailer
    throw new ArchiveDamaged({ detail: "its checksum differs" })
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
