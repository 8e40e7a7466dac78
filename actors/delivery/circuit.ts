/** The circuit breaker of one origin, and when what it turns away may come back. */
import type { DeliveryLimits } from "./limits.ts"

/** What an attempt says of its origin: that it answers, that it does not, or neither. */
export type Health = "answers" | "faults" | "unknown"

type CircuitLimits = Pick<DeliveryLimits, "faultsMax" | "openMs" | "openMaxMs">

/**
 * Closed until so many faults in a row; then open, for twice as long each time; after that one
 * probe at a time is let through. What answers closes it.
 */
export class CircuitBreaker {
  readonly #limits: CircuitLimits
  #faults = 0
  #openings = 0
  #untilMs = 0
  #probing = false

  constructor(limits: CircuitLimits) {
    this.#limits = limits
  }

  /** Whether it has opened and not been closed since. */
  get isOpen(): boolean {
    return this.#openings > 0
  }

  /** Whether there is nothing to remember. */
  get isBlank(): boolean {
    return this.#openings === 0 && this.#faults === 0
  }

  /** When an attempt that is turned away now may come back; undefined: it may go ahead. */
  closedUntil(nowMs: number, retryMs: number): number | undefined {
    if (this.#openings === 0) return undefined
    if (nowMs < this.#untilMs) return this.#untilMs
    return this.#probing ? nowMs + retryMs : undefined
  }

  /** An attempt begins; gives whether it is the probe. */
  begin(): boolean {
    if (this.#openings === 0) return false
    this.#probing = true
    return true
  }

  /** An attempt has ended; gives whether this opened the circuit. */
  end(health: Health, probe: boolean, nowMs: number): boolean {
    if (probe) this.#probing = false
    if (health === "unknown") return false
    if (health === "answers") {
      this.#faults = 0
      this.#openings = 0
      return false
    }
    // Attempts from before the opening say nothing new.
    if (this.#openings > 0 && !probe) return false
    this.#faults += 1
    if (!probe && this.#faults < this.#limits.faultsMax) return false
    const longer = this.#limits.openMs * 2 ** Math.min(this.#openings, 30)
    this.#untilMs = nowMs + Math.min(longer, this.#limits.openMaxMs)
    this.#openings += 1
    this.#faults = 0
    return true
  }
}
