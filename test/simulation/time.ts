/**
 * Virtual time for many computers in one process. Whatever runs is run by a computer: its timers
 * fire by its own clock, wait while it is paused, and never come once it is dead. All that the
 * code asks the global objects of time and chance is answered from here, so that a seed has one
 * course only.
 */
import { type Event, EventHeap } from "./heap.ts"
import { randomOf } from "../runtime/placement-world.ts"

/** When simulated time begins, ms since the epoch. */
export const EPOCH_MS = 1_800_000_000_000
/** A turn of a computer's event loop takes so long at most, in ms. */
const TURN_MS = 0.05

export interface Computer {
  readonly name: string
  /** Its clock runs so much faster than time. */
  readonly rate: number
  /** Of its wall clock, which may jump. */
  offsetMs: number
  /** When its clock has jumped last, true time. */
  jumpedAtMs: number
  alive: boolean
  /** It does nothing before. */
  pausedUntilMs: number
  /** When its last turn that was asked for comes: turns keep their order. */
  turnAtMs: number
}

type Globals = Pick<
  typeof globalThis,
  | "setTimeout"
  | "clearTimeout"
  | "setInterval"
  | "clearInterval"
  | "setImmediate"
  | "clearImmediate"
>

/** As `setTimeout` gives it; the code calls no more of it. */
class Timer {
  event: Event | undefined = undefined
  ref(): this {
    return this
  }
  unref(): this {
    return this
  }
}

export class VirtualTime {
  nowMs = 0
  /** Events that were run. */
  steps = 0
  readonly random: () => number
  /** Whose turn it is. */
  computer: Computer
  private readonly seed: number
  private readonly outside: Computer
  private readonly events = new EventHeap()
  private orders = 0

  constructor(seed: number) {
    this.seed = seed
    this.random = randomOf(seed)
    this.outside = this.newComputer("outside", 1, 0)
    this.computer = this.outside
  }

  newComputer(name: string, rate: number, offsetMs: number): Computer {
    return {
      name,
      rate,
      offsetMs,
      jumpedAtMs: Number.NEGATIVE_INFINITY,
      alive: true,
      pausedUntilMs: 0,
      turnAtMs: 0
    }
  }

  wallMs({ offsetMs, rate }: Computer): number {
    return EPOCH_MS + Math.floor(offsetMs + this.nowMs * rate)
  }

  /** Runs it on a computer, so much of true time later. */
  on(computer: Computer, delayMs: number, run: () => void): Event {
    const event: Event = {
      atMs: this.nowMs + delayMs,
      order: this.orders++,
      live: true,
      run: () => {
        if (!computer.alive) return
        if (computer.pausedUntilMs > this.nowMs) {
          this.on(computer, computer.pausedUntilMs - this.nowMs, run)
          return
        }
        this.computer = computer
        run()
      }
    }
    this.events.push(event)
    return event
  }

  /** Runs it beside all computers. */
  later(delayMs: number, run: () => void): () => void {
    const event = this.on(this.outside, delayMs, run)
    return () => void (event.live = false)
  }

  /** Runs what is to happen until then; the microtasks of each event come before the next one. */
  runUntil(endMs: number): Promise<void> {
    return new Promise((resolve, reject) => {
      const step = (): void => {
        for (;;) {
          const event = this.events.peek()
          if (event === undefined || event.atMs > endMs) {
            this.nowMs = endMs
            this.computer = this.outside
            return resolve()
          }
          this.events.pop()
          if (!event.live) continue
          this.nowMs = Math.max(this.nowMs, event.atMs)
          this.steps++
          try {
            event.run()
          } catch (error) {
            return reject(error)
          }
          break
        }
        queueMicrotask(next)
      }
      // The tick comes when no microtask is left.
      const next = (): void => process.nextTick(step)
      step()
    })
  }

  /** Puts itself in the place of the global clocks, timers and dice; the result gives them back. */
  install(): () => void {
    const { clearImmediate, clearInterval, clearTimeout } = globalThis
    const { setImmediate, setInterval, setTimeout } = globalThis
    const now = Date.now
    const { random } = Math
    // Called on `crypto` alone, when it is given back.
    const uuid = crypto.randomUUID
    Object.assign(globalThis, this.timers())
    Date.now = () => this.wallMs(this.computer)
    // Libraries draw names from it, how many depends on what ran before in this process.
    Math.random = randomOf(this.seed)
    // Shadows the method of the prototype.
    Object.defineProperty(performance, "now", {
      configurable: true,
      value: () => this.nowMs * this.computer.rate
    })
    crypto.randomUUID = () => {
      const digits = Array.from({ length: 8 }, () => Math.floor(this.random() * 65_536))
      const [a, b, c, d, e, f, g, h] = digits.map((one) => one.toString(16).padStart(4, "0"))
      return `${a}${b}-${c}-${d}-${e}-${f}${g}${h}`
    }
    return () => {
      Object.assign(globalThis, {
        clearImmediate,
        clearInterval,
        clearTimeout,
        setImmediate,
        setInterval,
        setTimeout
      })
      Date.now = now
      Math.random = random
      Reflect.deleteProperty(performance, "now")
      crypto.randomUUID = uuid
    }
  }

  private timers(): Globals {
    const timer = (ms: number | undefined, run: () => void, isTurn: boolean): Timer => {
      const made = new Timer()
      made.event = isTurn ? this.turn(run) : this.on(
        this.computer,
        Math.max(1, ms ?? 1) / this.computer.rate,
        run
      )
      return made
    }
    const clear = (made: Timer | undefined): void => {
      if (made?.event !== undefined) made.event.live = false
    }
    const repeat = (run: () => void, ms: number): Timer => {
      const made = new Timer()
      const again = (): void => {
        made.event = timer(ms, () => {
          again()
          run()
        }, false).event
      }
      again()
      return made
    }
    const bound = (run: (...args: Array<unknown>) => void, args: Array<unknown>) =>
      args.length === 0 ? run : () => run(...args)
    // The code uses what these have of the global functions, and no more.
    return {
      setTimeout: (run: () => void, ms?: number, ...args: Array<unknown>) =>
        timer(ms, bound(run, args), false),
      clearTimeout: clear,
      setInterval: (run: () => void, ms: number) => repeat(run, ms),
      clearInterval: clear,
      setImmediate: (run: () => void, ...args: Array<unknown>) => timer(0, bound(run, args), true),
      clearImmediate: clear
    } as unknown as Globals
  }

  /** The next turn of the computer's event loop. */
  private turn(run: () => void): Event {
    const { computer } = this
    computer.turnAtMs = Math.max(computer.turnAtMs, this.nowMs + this.random() * TURN_MS)
    return this.on(computer, computer.turnAtMs - this.nowMs, run)
  }
}
