/**
 * The memory that answers may take which their clients have not read: all together, and those of
 * one client network (protocol §7). An answer that the socket takes at once costs nothing. Each
 * byte that a client reads gives its answer more time; an answer without time is ended. When the
 * answers take too much memory, those with the least time are ended first.
 */
import { answerBytesPerSecondMin, answerCreditMsMax, answerKeepMs, answerSweepMs, heldAnswerBytes,
  networkUnreadBytesMax, placeReaderBytesPerSecondMin, readerStallMs,
  unreadBytesMax } from "../../limits.ts"

/** How fast a client must read. What it reads faster gives it time for pauses, at most so long. */
export interface ReadingPace {
  readonly bytesPerSecondMin: number
  readonly creditMsMax: number
}

const commonPace: ReadingPace = {
  bytesPerSecondMin: answerBytesPerSecondMin,
  creditMsMax: answerCreditMsMax
}

/** The pace for answers that hold a place, which a slow reader would otherwise keep for ever. */
export const placePace: ReadingPace = {
  bytesPerSecondMin: placeReaderBytesPerSecondMin,
  creditMsMax: readerStallMs
}

/** How one answer waits for its client. */
interface Waiting {
  readonly network: string
  /** What waits; answers with the same bytes share their memory. */
  readonly body?: Uint8Array | undefined
  readonly pace?: ReadingPace | undefined
  /** Ends the connection, and so releases the memory. */
  readonly end: () => void
  /** The answer has more time: the native server must not end the connection. */
  readonly keep: () => void
}

interface Held extends Waiting {
  /** What it takes beside the shared body. */
  bytes: number
  /** When it has no more time. */
  dueMs: number
  keptMs: number
  /** Since when it does not wait for its client. */
  pausedMs: number | undefined
}

/** The part of the budget that one answer takes. */
export interface HeldAnswer {
  /** Takes this much beside its body from now on; perhaps others, or this answer, are ended. */
  readonly resize: (bytes: number) => void
  /** Whether it waits for more to send; then it needs no time, and is not ended. */
  readonly pause: (isPaused: boolean) => void
  /** The client has taken so many bytes. */
  readonly progress: (bytes: number) => void
  readonly release: () => void
}

/** What answers take, each shared body once. */
class Use {
  bytes = 0
  private readonly holders = new Map<Uint8Array, number>()

  hold(body: Uint8Array): void {
    const count = this.holders.get(body) ?? 0
    if (count === 0) this.bytes += body.length
    this.holders.set(body, count + 1)
  }

  release(body: Uint8Array): void {
    const count = this.holders.get(body) ?? 0
    if (count > 1) return void this.holders.set(body, count - 1)
    if (this.holders.delete(body)) this.bytes -= body.length
  }
}

interface UnreadLimits {
  readonly totalBytesMax: number
  readonly networkBytesMax: number
}

const defaultLimits: UnreadLimits = {
  totalBytesMax: unreadBytesMax,
  networkBytesMax: networkUnreadBytesMax
}

export class UnreadBudget {
  private readonly limits: UnreadLimits
  private readonly nowMs: () => number
  private readonly held = new Set<Held>()
  private readonly all = new Use()
  private readonly networks = new Map<string, Use>()
  private timer: NodeJS.Timeout | undefined

  /** `nowMs` reads a clock that never goes backwards. */
  constructor(limits = defaultLimits, nowMs = () => performance.now()) {
    this.limits = limits
    this.nowMs = nowMs
  }

  /** Bytes of all unread answers. */
  get bytes(): number {
    return this.all.bytes
  }

  /** The number of unread answers. */
  get size(): number {
    return this.held.size
  }

  /** Begins to hold an answer; perhaps others are ended to make room for it. */
  hold(waiting: Waiting): HeldAnswer {
    const nowMs = this.nowMs()
    const answer: Held = {
      ...waiting,
      bytes: 0,
      dueMs: nowMs + readerStallMs,
      keptMs: nowMs,
      pausedMs: undefined
    }
    this.held.add(answer)
    const use = this.networks.get(waiting.network) ?? new Use()
    this.networks.set(waiting.network, use)
    if (answer.body !== undefined) {
      this.all.hold(answer.body)
      use.hold(answer.body)
    }
    this.timer ??= setTimeout(this.turn, answerSweepMs).unref()
    this.count(answer, heldAnswerBytes)
    return {
      resize: (bytes) => this.count(answer, heldAnswerBytes + bytes),
      pause: (isPaused) => this.pause(answer, isPaused),
      progress: (bytes) => this.credit(answer, bytes),
      release: () => this.release(answer)
    }
  }

  /** Ends the answers that have no more time, and keeps the others. */
  sweep(): void {
    const nowMs = this.nowMs()
    for (const answer of this.held) {
      if (answer.pausedMs !== undefined) continue
      if (answer.dueMs <= nowMs) {
        answer.end()
      } else if (nowMs - answer.keptMs >= answerKeepMs) {
        answer.keptMs = nowMs
        answer.keep()
      }
    }
  }

  private readonly turn = (): void => {
    this.sweep()
    this.timer = this.held.size === 0
      ? undefined
      : setTimeout(this.turn, answerSweepMs).unref()
  }

  private pause(answer: Held, isPaused: boolean): void {
    const { pausedMs } = answer
    if (isPaused) answer.pausedMs ??= this.nowMs()
    else if (pausedMs !== undefined) {
      answer.dueMs += this.nowMs() - pausedMs
      answer.pausedMs = undefined
    }
  }

  private credit(answer: Held, bytes: number): void {
    const { bytesPerSecondMin, creditMsMax } = answer.pace ?? commonPace
    const moreMs = bytes * 1000 / bytesPerSecondMin
    answer.dueMs = Math.min(answer.dueMs + moreMs, this.nowMs() + creditMsMax)
  }

  private count(answer: Held, bytes: number): void {
    if (!this.held.has(answer)) return
    const more = bytes - answer.bytes
    answer.bytes = bytes
    this.all.bytes += more
    const use = this.networks.get(answer.network)
    if (use !== undefined) use.bytes += more
    if (more > 0) this.makeRoom(answer)
  }

  private release(answer: Held): void {
    if (!this.held.has(answer)) return
    this.count(answer, 0)
    this.held.delete(answer)
    const { body, network } = answer
    const use = this.networks.get(network)
    if (body !== undefined) {
      this.all.release(body)
      use?.release(body)
    }
    if (use?.bytes === 0) this.networks.delete(network)
  }

  /** Ends others while `answer`, its network or all take too much; a single one always has room. */
  private makeRoom(answer: Held): void {
    const { networkBytesMax, totalBytesMax } = this.limits
    const bytesOf = (network: string) => this.networks.get(network)?.bytes ?? 0
    while (bytesOf(answer.network) > networkBytesMax) {
      if (!this.endSlowest(answer.network, answer)) break
    }
    while (this.bytes > totalBytesMax) {
      let largest = answer.network
      for (const network of this.networks.keys()) {
        if (bytesOf(network) > bytesOf(largest)) largest = network
      }
      if (!this.endSlowest(largest, answer)) break
    }
  }

  /** Ends the answer of a network that has the least time; false if none waits but `spared`. */
  private endSlowest(network: string, spared: Held): boolean {
    let slowest: Held | undefined
    for (const one of this.held) {
      if (one === spared || one.network !== network || one.pausedMs !== undefined) continue
      if (slowest === undefined || one.dueMs < slowest.dueMs) slowest = one
    }
    if (slowest === undefined) return false
    this.release(slowest)
    slowest.end()
    return true
  }
}
