/** Calls of other services by the effects of actors: they fail, get lost, or are made later. */
import type { Computer, Trace, VirtualTime } from "../time/index.ts"
import type { SimulatedHost, SimulationNoise } from "./options.ts"

/** A call of another service has no answer: the service may have processed it, or may still. */
export class OutsideFailure extends Error {
  override readonly name = "OutsideFailure"
  /** What was called. */
  readonly what: string

  constructor(what: string) {
    super(`no answer to ${what}, as simulated: retry it, it may have been processed`)
    this.what = what
  }
}

/** The longest way to another service, ms. */
const wayMaxMs = 40
/** How long a caller waits for an answer, ms. */
const deadlineMs = 5_000
/** How late a call may be made, ms. */
const lateMaxMs = 30_000

/**
 * `made`: it is answered; `refused`: not made; `lost`: made, and the answer is lost; `late`: made
 * after the failure was reported; `never`: neither made nor answered.
 */
type Fate = "made" | "refused" | "lost" | "late" | "never"

const failures: ReadonlyArray<Fate> = ["refused", "lost", "late", "never"]

export class OutsideCalls {
  noise: SimulationNoise
  private readonly time: VirtualTime
  private readonly trace: Trace

  constructor(time: VirtualTime, trace: Trace, noise: SimulationNoise) {
    this.time = time
    this.trace = trace
    this.noise = noise
  }

  /** The calls of a process. */
  from(computer: Computer): SimulatedHost["outside"] {
    return (what, call) => this.call(computer, what, call)
  }

  private fate(): Fate {
    const { random } = this.time
    if (random() >= this.noise.outside) return "made"
    return failures[Math.floor(random() * failures.length)] ?? "made"
  }

  private call<A>(computer: Computer, what: string, call: () => A | Promise<A>): Promise<A> {
    const { time, trace } = this
    const fate = this.fate()
    trace.note("outside", () => `${computer.name} calls ${what}: ${fate}`)
    const wayMs = (): number => time.random() * wayMaxMs
    return new Promise((resolve, reject) => {
      const fail = (): void => reject(new OutsideFailure(what))
      if (fate === "refused") return void time.on(computer, wayMs(), fail)
      if (fate !== "made") time.on(computer, deadlineMs, fail)
      if (fate === "never") return
      const atMs = fate === "late" ? deadlineMs + time.random() * lateMaxMs : wayMs()
      time.later(atMs, () => {
        const made = new Promise<A>((done) => done(call()))
        made.then(
          (answer) => fate === "made" && time.on(computer, wayMs(), () => resolve(answer)),
          (error: unknown) => fate === "made" && time.on(computer, wayMs(), () => reject(error))
        )
      })
    })
  }
}
