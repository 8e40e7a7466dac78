/**
 * The blobs of all nodes, by the contract of the blob port. A call may be kept or not without
 * anybody being told: its node then learns of a failure, and the call may still take effect later.
 */
import { Effect } from "effect"
import { type BlobsApi, StorageUnavailable } from "../../runtime/index.ts"
import { makeMemoryBlobs } from "../../runtime/memory/blobs.ts"
import type { Noise } from "./plan.ts"
import type { Computer, VirtualTime } from "./time.ts"
import type { Trace } from "./trace.ts"

/** How long a node waits for an answer, and how late a call may take effect, ms. */
const DEADLINE_MS = 5_000
const LATE_MAX_MS = 30_000
const WAY_MS = 10

/** A blob is settled this long after its upload began: later than any commit is stored. */
export const SETTLED_MS = 60_000

const unavailable = new StorageUnavailable({ detail: "as simulated" })

type Fate = "kept" | "fails" | "lost" | "late" | "never"

export class SharedBlobs {
  readonly inner: BlobsApi = makeMemoryBlobs()
  noise: Noise
  /** When the upload of each blob began, true time. */
  private readonly begun = new Map<string, number>()
  /** Number of calls that are not yet kept. */
  private pending = 0
  private readonly time: VirtualTime
  private readonly trace: Trace

  constructor(time: VirtualTime, trace: Trace, noise: Noise) {
    this.time = time
    this.trace = trace
    this.noise = noise
  }

  /** Whether calls will still be kept. */
  get isExpecting(): boolean {
    return this.pending > 0
  }

  /** When all blobs are settled, true time. */
  get settledMs(): number {
    return Math.max(0, ...this.begun.values()) + SETTLED_MS
  }

  /** A node's connection; calls before `cutUntilMs` arrive at that time. */
  connect(computer: Computer, cutUntilMs: () => number): BlobsApi {
    const { begun, inner, time } = this
    const wayMs = (): number =>
      Math.max(0, cutUntilMs() - time.nowMs) + 0.1 +
      time.random() * (WAY_MS + this.noise.slowMs / 2)
    /** Calls the shared blobs, with the fate that this call has. */
    const call = <A, E>(
      what: string,
      fate: Fate,
      run: () => Effect.Effect<A, E>
    ): Effect.Effect<A, E | StorageUnavailable> =>
      Effect.callback((resume) => {
        const { name } = computer
        if (fate !== "kept") this.trace.note("blobs", `${name}: ${what} ${fate}`)
        const atMs = fate === "late" ? DEADLINE_MS + time.random() * LATE_MAX_MS : wayMs()
        if (fate === "kept" || fate === "late" || fate === "lost") {
          this.pending++
          time.later(atMs, () => {
            this.pending--
            Effect.runFork(run()).addObserver((exit) => {
              if (fate === "kept") time.on(computer, wayMs(), () => resume(exit))
            })
          })
        }
        if (fate !== "kept") {
          const toldMs = fate === "fails" ? atMs : DEADLINE_MS
          time.on(computer, toldMs, () => resume(Effect.fail(unavailable)))
        }
      })
    const read = <A, E>(what: string, run: () => Effect.Effect<A, E>) =>
      call(what, this.readFate(), run)
    return {
      put: (id, source, bytesMax) =>
        Effect.suspend(() => {
          begun.set(id, time.nowMs)
          return call(`put ${id}`, this.writeFate(), () => inner.put(id, source, bytesMax))
        }),
      open: (id, range) => Effect.suspend(() => read(`open ${id}`, () => inner.open(id, range))),
      info: (id) => Effect.suspend(() => read(`info ${id}`, () => inner.info(id))),
      remove: (id) =>
        Effect.suspend(() => call(`remove ${id}`, this.writeFate(), () => inner.remove(id))),
      scan: (after, limit) => Effect.suspend(() => read("scan", () => inner.scan(after, limit))),
      scanSettled: (after, limit) =>
        Effect.suspend(() => read("scan", () => this.settled(after, limit))),
      confirm: inner.confirm
    }
  }

  /** As the port's `scanSettled`. */
  private settled(after: string | undefined, limit: number) {
    const isSettled = (id: string): boolean =>
      (this.begun.get(id) ?? 0) + SETTLED_MS <= this.time.nowMs
    return Effect.map(
      this.inner.scan(after, Number.MAX_SAFE_INTEGER),
      (ids) => ids.filter(isSettled).slice(0, limit)
    )
  }

  /**
   * `fails`: not kept; `lost`: kept, and nobody is told; `late`: kept after the failure was
   * reported; `never`: not kept, and nobody is told.
   */
  private writeFate(): Fate {
    const { commitFails, commitHangs, commitLost } = this.noise
    let lot = this.time.random()
    if ((lot -= commitFails) < 0) return "fails"
    if ((lot -= commitLost) < 0) return "lost"
    if ((lot -= commitHangs) >= 0) return "kept"
    return this.time.random() < 0.5 ? "late" : "never"
  }

  private readFate(): Fate {
    const { readFails, readHangs } = this.noise
    const lot = this.time.random()
    return lot < readHangs ? "never" : lot < readHangs + readFails ? "fails" : "kept"
  }
}
