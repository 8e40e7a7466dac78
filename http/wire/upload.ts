/** A request body as a stream; a slow reader pauses the client. */
import { Readable } from "node:stream"
import { BodyError, type BodyFault } from "./request.ts"

interface Valve {
  readonly pause: () => void
  readonly resume: () => void
}

/** The bytes between the connection's callback and one reader. */
export class Upload extends Readable implements AsyncIterable<Uint8Array> {
  private readonly bytesMax: number
  private readonly valve: Valve
  private totalBytes = 0
  private hasArrived = false
  private isComplete = false
  private isClientPaused = false

  constructor(bytesMax: number, highWaterBytes: number, valve: Valve) {
    super({ highWaterMark: highWaterBytes })
    this.bytesMax = bytesMax
    this.valve = valve
    // The reader gets the error; without a reader the error is ignored.
    this.on("error", () => {})
  }

  /** Queues a copy of a chunk: the library reuses its memory after the callback. */
  receive(chunk: ArrayBuffer, isLast: boolean): void {
    if (this.destroyed) return
    this.totalBytes += chunk.byteLength
    if (this.totalBytes > this.bytesMax) return this.fail("TooLarge")
    const hasRoom = chunk.byteLength === 0 || this.push(new Uint8Array(chunk.slice(0)))
    if (isLast) this.hasArrived = true
    else if (!hasRoom && !this.isClientPaused) {
      this.isClientPaused = true
      this.valve.pause()
    }
  }

  /** Ends the body, after its last chunk was received. */
  complete(): void {
    if (this.destroyed) return
    this.isComplete = true
    this.push(null)
  }

  override _read(): void {
    // Not after the end: the library closes a resumed connection that sends nothing for 10 s.
    if (!this.hasArrived) this.release()
  }

  /** Whether the body ended early because it exceeded its bound. */
  get isTooLarge(): boolean {
    return this.errored instanceof BodyError && this.errored._tag === "TooLarge"
  }

  /** Resumes the client: when the reader has caught up, and before the answer. */
  release(): void {
    if (!this.isClientPaused) return
    this.isClientPaused = false
    this.valve.resume()
  }

  /** Ends the body with a fault, unless it is complete; queued chunks are dropped. */
  fail(tag: BodyFault["_tag"]): void {
    if (!this.isComplete || tag !== "Aborted") this.destroy(new BodyError(tag))
  }
}
