/** A request body as a stream; a reader that is behind pauses the client. */
import { BodyError, type BodyFault } from "./request.ts"

interface Valve {
  readonly pause: () => void
  readonly resume: () => void
}

/** Queue between the connection's callback and one asynchronous reader. */
export class Upload implements AsyncIterable<Uint8Array> {
  readonly #limitBytes: number
  readonly #highWaterBytes: number
  readonly #valve: Valve
  #queue: Array<Uint8Array> = []
  #queuedBytes = 0
  #totalBytes = 0
  #ended = false
  #paused = false
  #failure: BodyError | undefined
  #wake: (() => void) | undefined

  constructor(limitBytes: number, highWaterBytes: number, valve: Valve) {
    this.#limitBytes = limitBytes
    this.#highWaterBytes = highWaterBytes
    this.#valve = valve
  }

  /** Queues a copy of a chunk: the library reuses its memory after the callback. */
  push(chunk: ArrayBuffer, isLast: boolean): void {
    if (this.#failure !== undefined) return
    this.#totalBytes += chunk.byteLength
    if (this.#totalBytes > this.#limitBytes) return this.fail("TooLarge")
    if (chunk.byteLength > 0) {
      this.#queue.push(new Uint8Array(chunk.slice(0)))
      this.#queuedBytes += chunk.byteLength
    }
    this.#ended ||= isLast
    if (!this.#ended && !this.#paused && this.#queuedBytes >= this.#highWaterBytes) {
      this.#paused = true
      this.#valve.pause()
    }
    this.#notify()
  }

  /** Resumes the client: when the reader has caught up, and before the answer. */
  release(): void {
    if (!this.#paused) return
    this.#paused = false
    this.#valve.resume()
  }

  /** Ends the body with a fault, unless it is complete; queued chunks are dropped. */
  fail(tag: BodyFault["_tag"]): void {
    if (this.#failure !== undefined || (this.#ended && tag === "Aborted")) return
    this.#failure = new BodyError(tag)
    this.#queue = []
    this.#queuedBytes = 0
    this.#notify()
  }

  #notify(): void {
    const wake = this.#wake
    this.#wake = undefined
    wake?.()
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Uint8Array> {
    for (;;) {
      if (this.#failure !== undefined) throw this.#failure
      const chunk = this.#queue.shift()
      if (chunk !== undefined) {
        this.#queuedBytes -= chunk.length
        // Not after the end: the library closes a resumed connection that sends nothing for 10 s.
        if (!this.#ended && this.#queuedBytes < this.#highWaterBytes / 2) this.release()
        yield chunk
      } else if (this.#ended) return
      else {
        await new Promise<void>((resolve) => {
          this.#wake = resolve
        })
      }
    }
  }
}
