/**
 * The calls of nodes to a shared store. A call may be kept or not without anybody being told: its
 * node then learns of a failure, and the call may still take effect later.
 */
import { Effect } from "effect"
import { StorageUnavailable } from "../../runtime/index.ts"
import type { Noise } from "./plan.ts"
import type { Computer, VirtualTime } from "./time.ts"
import type { Trace } from "./trace.ts"

/** How long a node waits for an answer, and how late a call may take effect, ms. */
const DEADLINE_MS = 5_000
const LATE_MAX_MS = 30_000
const WAY_MS = 10

const unavailable = new StorageUnavailable({ detail: "as simulated" })

type Fate = "kept" | "fails" | "lost" | "late" | "never"

type Call = <A, E>(
  what: string,
  run: () => Effect.Effect<A, E>
) => Effect.Effect<A, E | StorageUnavailable>

export class SharedCalls {
  readonly time: VirtualTime
  noise: Noise
  private readonly name: string
  private readonly trace: Trace
  /** Number of calls that are not yet kept. */
  private pending = 0

  /** `name`: of the store, in the trace. */
  constructor(name: string, time: VirtualTime, trace: Trace, noise: Noise) {
    this.name = name
    this.time = time
    this.trace = trace
    this.noise = noise
  }

  /** Whether calls will still be kept. */
  get isExpecting(): boolean {
    return this.pending > 0
  }

  /** A node's connection; calls before `cutUntilMs` arrive at that time. */
  connect(
    computer: Computer,
    cutUntilMs: () => number
  ): { readonly read: Call; readonly write: Call } {
    const { time } = this
    const wayMs = (): number =>
      Math.max(0, cutUntilMs() - time.nowMs) + 0.1 +
      time.random() * (WAY_MS + this.noise.slowMs / 2)
    const call = <A, E>(
      what: string,
      fate: Fate,
      run: () => Effect.Effect<A, E>
    ): Effect.Effect<A, E | StorageUnavailable> =>
      Effect.callback((resume) => {
        const { name } = computer
        if (fate !== "kept") this.trace.note(this.name, `${name}: ${what} ${fate}`)
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
    return {
      read: (what, run) => Effect.suspend(() => call(what, this.readFate(), run)),
      write: (what, run) => Effect.suspend(() => call(what, this.writeFate(), run))
    }
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
