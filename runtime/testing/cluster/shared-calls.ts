/**
 * The calls of nodes to a shared store. A call may be kept or not without an answer: its
 * node then learns of a failure, and the call may still take effect later.
 */
import { Effect } from "effect"
import { StorageUnavailable } from "../../actor/index.ts"
import type { Computer, Trace, VirtualTime } from "../time/index.ts"
import type { ClusterNoise } from "./noise.ts"

/** How long a node waits for an answer, and how late a call may take effect, ms. */
const answerDeadlineMs = 5_000
const lateMaxMs = 30_000
const wayMaxMs = 10

const unavailable = new StorageUnavailable({ detail: "as simulated" })

type Fate = "kept" | "fails" | "lost" | "late" | "never"

/** Makes one call; `what` names it in the trace. */
type Call = <A, E>(
  what: string,
  run: () => Effect.Effect<A, E>
) => Effect.Effect<A, E | StorageUnavailable>

export class SharedCalls {
  readonly time: VirtualTime
  noise: ClusterNoise
  private readonly name: string
  private readonly trace: Trace
  /** Number of calls that are not yet kept. */
  private pending = 0

  /** `name`: of the store, in the trace. */
  constructor(name: string, time: VirtualTime, trace: Trace, noise: ClusterNoise) {
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
      time.random() * (wayMaxMs + this.noise.slowMs / 2)
    const call = <A, E>(
      what: string,
      fate: Fate,
      run: () => Effect.Effect<A, E>
    ): Effect.Effect<A, E | StorageUnavailable> =>
      Effect.callback((resume) => {
        const { name } = computer
        if (fate !== "kept") this.trace.note(this.name, `${name}: ${what} ${fate}`)
        const atMs = fate === "late" ? answerDeadlineMs + time.random() * lateMaxMs : wayMs()
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
          const failedMs = fate === "fails" ? atMs : answerDeadlineMs
          time.on(computer, failedMs, () => resume(Effect.fail(unavailable)))
        }
      })
    return {
      read: (what, run) => Effect.suspend(() => call(what, this.readFate(), run)),
      write: (what, run) => Effect.suspend(() => call(what, this.writeFate(), run))
    }
  }

  /**
   * `fails`: not kept; `lost`: kept, without an answer; `late`: kept after the failure was
   * reported; `never`: not kept, without an answer.
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
