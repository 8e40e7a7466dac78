/**
 * The memory that answers may take which their clients have not read: all together, and those of
 * one client network (protocol §7). An answer that the socket takes at once costs nothing. Each
 * byte that a client reads gives its answer more time; an answer without time is ended. When the
 * answers take too much memory, those with the least time are ended first, each in logarithmic
 * time: thousands that share one body may have to make room at once.
 */
import { answerBytesPerSecondMin, answerCreditMsMax, answerKeepMs, answerSweepMs, heldAnswerBytes,
  networkUnreadBytesMax, placeReaderBytesPerSecondMin, readerStallMs,
  unreadBytesMax } from "../../limits.ts"
import { IndexedHeap } from "./indexed-heap.ts"

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
  readonly use: NetworkUse
  /** Later ones have a greater number. */
  readonly n: number
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

/** What the answers of one network take, and those of them that wait for their clients. */
class NetworkUse extends Use {
  /** The one with the least time first. */
  readonly waiting = new IndexedHeap<Held>((one, other) =>
    one.dueMs === other.dueMs ? one.n < other.n : one.dueMs < other.dueMs
  )
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
  private readonly networks = new Map<string, NetworkUse>()
  /** The network that uses most first. */
  private readonly uses = new IndexedHeap<NetworkUse>((one, other) => one.bytes > other.bytes)
  private heldCount = 0
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
    const use = this.networks.get(waiting.network) ?? new NetworkUse()
    this.networks.set(waiting.network, use)
    const answer: Held = {
      ...waiting,
      use,
      n: this.heldCount++,
      bytes: 0,
      dueMs: nowMs + readerStallMs,
      keptMs: nowMs,
      pausedMs: undefined
    }
    this.held.add(answer)
    if (answer.body !== undefined) {
      this.all.hold(answer.body)
      use.hold(answer.body)
    }
    this.timer ??= setTimeout(this.turn, answerSweepMs).unref()
    this.take(answer, heldAnswerBytes)
    return {
      resize: (bytes) => this.take(answer, heldAnswerBytes + bytes),
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
    this.place(answer)
  }

  /** Enters an answer among those of its network that may be ended, or removes it from them. */
  private place(answer: Held): void {
    if (this.held.has(answer) && answer.pausedMs === undefined) answer.use.waiting.put(answer)
    else answer.use.waiting.remove(answer)
  }

  private credit(answer: Held, bytes: number): void {
    const { bytesPerSecondMin, creditMsMax } = answer.pace ?? commonPace
    const moreMs = bytes * 1000 / bytesPerSecondMin
    answer.dueMs = Math.min(answer.dueMs + moreMs, this.nowMs() + creditMsMax)
    this.place(answer)
  }

  /** Counts so many bytes of an answer from now on; perhaps others are ended to make room. */
  private take(answer: Held, bytes: number): void {
    if (!this.held.has(answer)) return
    const { use } = answer
    const more = bytes - answer.bytes
    answer.bytes = bytes
    this.all.bytes += more
    use.bytes += more
    this.uses.put(use)
    if (more > 0) this.makeRoom(answer)
  }

  private release(answer: Held): void {
    if (!this.held.has(answer)) return
    this.take(answer, 0)
    this.held.delete(answer)
    this.place(answer)
    const { body, network, use } = answer
    if (body !== undefined) {
      this.all.release(body)
      use.release(body)
    }
    if (use.bytes > 0) return this.uses.put(use)
    this.uses.remove(use)
    this.networks.delete(network)
  }

  /** Ends others while `answer`, its network or all take too much; a single one always has room. */
  private makeRoom(answer: Held): void {
    const { networkBytesMax, totalBytesMax } = this.limits
    const { use } = answer
    // It is spared itself.
    use.waiting.remove(answer)
    while (use.bytes > networkBytesMax && this.endSlowest(use)) continue
    while (this.bytes > totalBytesMax && this.endSlowest(this.largest(use))) continue
    this.place(answer)
  }

  /** The network that uses most; `use`, if no other one uses more. */
  private largest(use: NetworkUse): NetworkUse {
    const { first } = this.uses
    return first === undefined || first.bytes <= use.bytes ? use : first
  }

  /** Ends the answer of a network that has the least time; false if none waits. */
  private endSlowest({ waiting }: NetworkUse): boolean {
    const { first } = waiting
    if (first === undefined) return false
    this.release(first)
    first.end()
    return true
  }
}
