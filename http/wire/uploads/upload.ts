/** A request body as a stream; a slow reader pauses the client. */
import { Readable } from "node:stream"
import { heldUploadBytes, overrunBytesMax } from "../../limits.ts"
import type { HeldBody } from "../body-budget.ts"
import { BodyError, type BodyFault } from "../request.ts"
import type { Spill } from "./spill.ts"

interface Valve {
  readonly pause: () => void
  readonly resume: () => void
  /** The rest of the body will not be read. */
  readonly failed: () => void
  /** The client has sent so much in this turn of the event loop that all others wait. */
  readonly cut: (turnBytes: number) => void
}

/** The bytes between the connection's callback and one reader. */
export class Upload extends Readable implements AsyncIterable<Uint8Array> {
  private readonly bytesMax: number
  private readonly valve: Valve
  /** What arrives although the client is paused. */
  private readonly spill: Spill
  private totalBytes = 0
  private hasArrived = false
  private isComplete = false
  private isClientPaused = false
  private held: HeldBody | undefined
  /** Bytes that the store holds in memory. */
  private storedBytes = 0

  constructor(bytesMax: number, highWaterBytes: number, valve: Valve, spill: Spill) {
    super({ highWaterMark: highWaterBytes })
    this.spill = spill
    this.bytesMax = bytesMax
    this.valve = valve
    // The reader gets the error; without a reader the error is ignored.
    this.on("error", () => {})
  }

  /** Counts from now on against the budget; fails if that is used up. */
  hold(held: HeldBody, storedBytes: number): void {
    this.held = held
    this.storedBytes = storedBytes
    this.count()
  }

  /** Counts the bytes that wait here in memory; fails if the budget is used up. */
  private count(moreBytes = 0): void {
    const bytes = heldUploadBytes + this.storedBytes + this.readableLength + moreBytes
    const shortage = this.held?.resize(bytes)
    if (shortage !== undefined) this.fail({ _tag: "NoRoom", shortage })
  }

  /** Queues a copy of a chunk: the library reuses its memory after the callback. */
  receive(chunk: ArrayBuffer, isLast: boolean): void {
    const { turn } = this.spill
    if (!isLast && turn.isOver(chunk.byteLength)) return this.valve.cut(turn.bytes)
    if (this.destroyed) return
    this.totalBytes += chunk.byteLength
    const { bytesMax } = this
    if (this.totalBytes > bytesMax) return this.fail({ _tag: "TooLarge", bytesMax })
    this.held?.arrive(chunk.byteLength)
    if (this.spill.hasMore || (this.isClientPaused && this.readableLength > overrunBytesMax)) {
      const fault = this.spill.write(new Uint8Array(chunk))
      if (fault === undefined) return isLast ? this.hasAll() : undefined
      // Without a file what arrives waits in memory, as far as there is room.
      if (this.spill.hasMore) return this.fail(fault)
    }
    // Before the copy: what is refused leaves nothing to collect.
    this.count(chunk.byteLength)
    if (this.destroyed) return
    const hasRoom = chunk.byteLength === 0 || this.push(new Uint8Array(chunk.slice(0)))
    if (isLast) this.hasAll()
    else if (!hasRoom && !this.isClientPaused && !this.destroyed) {
      this.isClientPaused = true
      this.held?.pause(true)
      this.valve.pause()
    }
  }

  private hasAll(): void {
    this.hasArrived = true
    this.held?.pause(true)
  }

  /** Ends the body, after its last chunk was received. */
  complete(): void {
    if (this.destroyed) return
    this.isComplete = true
    if (!this.spill.hasMore) this.push(null)
  }

  private readFile(): void {
    this.spill.next((piece) => {
      if (this.destroyed) return
      if (piece === undefined) return this.fail({ _tag: "FileFailed", why: "Unreadable" })
      this.count(piece.length)
      if (this.destroyed) return
      this.push(piece)
      if (this.isComplete && !this.spill.hasMore) this.push(null)
    })
  }

  override _destroy(error: Error | null, callback: (error?: Error | null) => void): void {
    this.spill.end()
    callback(error)
  }

  override _read(): void {
    if (this.spill.hasMore) return this.readFile()
    // Not after the end: the library closes a resumed connection that sends nothing for 10 s.
    if (!this.hasArrived) this.release()
    if (!this.destroyed) this.count()
  }

  /** Why the body ended early, if it did. */
  get fault(): BodyFault | undefined {
    return this.errored instanceof BodyError ? this.errored.fault : undefined
  }

  /** Resumes the client: when the reader has caught up, and before the answer. */
  release(): void {
    if (!this.isClientPaused) return
    this.isClientPaused = false
    this.held?.pause(false)
    this.valve.resume()
  }

  /** Ends the body with a fault, unless it is complete; queued chunks are dropped. */
  fail(fault: BodyFault): void {
    if (this.destroyed || (this.isComplete && fault._tag === "Aborted")) return
    // The request itself takes memory until its answer, for which the budget releases it.
    this.held?.resize(heldUploadBytes)
    this.held?.pause(true)
    if (fault._tag !== "Aborted") this.valve.failed()
    this.destroy(new BodyError(fault))
  }
}
