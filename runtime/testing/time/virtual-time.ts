/**
 * Virtual time for many computers in one process. All code runs on a computer: its timers fire by
 * its own clock, wait while it is paused, and never fire once it is dead. This file replaces the
 * global clocks, timers and random numbers, so a seed always runs the same way.
 */
import { installEntropy } from "./entropy.ts"
import { EventHeap, type ScheduledEvent } from "./event-heap.ts"
import { type Random, randomOf } from "./random.ts"

/** When simulated time begins, ms since the epoch. */
export const epochMs = 1_800_000_000_000
/** Makes random bytes independent of the other random numbers of a seed. */
const entropySeed = 0xb17e5
/** Longest turn of a computer's event loop, ms. */
const turnMs = 0.05

export interface Computer {
  readonly name: string
  /** How much faster than true time its clock runs. */
  readonly rate: number
  /** Offset of its wall clock, which may jump. */
  offsetMs: number
  /** True time of its clock's last jump. */
  jumpedAtMs: number
  alive: boolean
  /** The computer is paused until this time. */
  pausedUntilMs: number
  /** Time of its last scheduled turn, so that turns stay in order. */
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

/** The part of a `setTimeout` result that the code uses. */
class Timer {
  event: ScheduledEvent | undefined = undefined
  ref(): this {
    return this
  }
  unref(): this {
    return this
  }
}

export class VirtualTime {
  nowMs = 0
  /** Number of executed events. */
  steps = 0
  readonly random: Random
  /** The computer that runs now. */
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
    return epochMs + Math.floor(offsetMs + this.nowMs * rate)
  }

  /** Runs a function on a computer after this much true time. */
  on(computer: Computer, delayMs: number, run: () => void): ScheduledEvent {
    const event: ScheduledEvent = {
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

  /** Runs a function outside of all computers. */
  later(delayMs: number, run: () => void): () => void {
    const event = this.on(this.outside, delayMs, run)
    return () => void (event.live = false)
  }

  /** Runs all events until then; the microtasks of each event run before the next event. */
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
      // The tick runs when no microtask is left.
      const next = (): void => process.nextTick(step)
      step()
    })
  }

  /**
   * Replaces the global clocks, timers and random numbers; the result restores them. A program that
   * draws ids from a pool of random bytes gives `drawId`: it is called until the pool is used up,
   * so that what an earlier run left there changes nothing. Throws if a simulation already runs.
   */
  install(drawId?: () => unknown): () => void {
    if (Object.hasOwn(performance, "now")) {
      throw new Error(
        "a simulation already runs in this process: wait for its end before the next one begins"
      )
    }
    const { clearImmediate, clearInterval, clearTimeout } = globalThis
    const { setImmediate, setInterval, setTimeout } = globalThis
    const RealDate = Date
    const { now } = Date
    const { random } = Math
    // It is called only on `crypto`, after the restoration.
    const uuid = crypto.randomUUID
    Object.assign(globalThis, this.timers())
    const nowMs = () => this.wallMs(this.computer)
    Date.now = nowMs
    globalThis.Date = new Proxy(RealDate, {
      construct: (target, values, newTarget) =>
        Reflect.construct(target, values.length === 0 ? [nowMs()] : values, newTarget)
    })
    // Libraries draw names from it; the number depends on what ran before in this process.
    Math.random = randomOf(this.seed)
    const restoreEntropy = installEntropy(this.seed ^ entropySeed, drawId)
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
      globalThis.Date = RealDate
      Date.now = now
      Math.random = random
      Reflect.deleteProperty(performance, "now")
      crypto.randomUUID = uuid
      restoreEntropy()
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
    // These have only the parts of the global functions that the code uses.
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
  private turn(run: () => void): ScheduledEvent {
    const { computer } = this
    computer.turnAtMs = Math.max(computer.turnAtMs, this.nowMs + this.random() * turnMs)
    return this.on(computer, computer.turnAtMs - this.nowMs, run)
  }
}
