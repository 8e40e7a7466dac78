/**
 * The memory that unfinished bodies may take at this node: all together, and those of one client
 * network (protocol §7). A document that arrives in one piece takes none. The more of the memory
 * is used, the less time a body has; one that is late is given up.
 */
import { bodiesBytesMax, bodyBlockBytes, bodyDeadlines, bodyKeepMs, bodySweepMs,
  networkBodiesBytesMax, uploadBytesPerSecondMin } from "../limits.ts"
import type { Shortage } from "./request.ts"

/** How one body is received. */
interface Reception {
  /** Whether it may take long, if it arrives steadily; else all of it has a deadline. */
  readonly isSteady: boolean
  /** Ends the reception of a body that had `afterMs`, and so releases most of its memory. */
  readonly giveUp: (afterMs: number) => void
  /** The body has more time: the server must not end the connection. */
  readonly keep: () => void
}

/** One unfinished body. */
interface Held extends Reception {
  readonly network: string
  /** When it began or, of a steady one, its current window. */
  sinceMs: number
  /** What has arrived in the window. */
  arrivedBytes: number
  keptMs: number
  /** The service receives nothing for now, or has received all. */
  isPaused: boolean
  /** What it takes of the budget. */
  bytes: number
}

/** The part of the budget that one body takes. */
export interface HeldBody {
  /** Takes this much from now on; returns the limit, and changes nothing, if there is no room. */
  readonly resize: (bytes: number) => Shortage | undefined
  /** So many bytes have arrived. */
  readonly arrive: (bytes: number) => void
  /** Whether the service itself makes the client wait; then no deadline passes. */
  readonly pause: (isPaused: boolean) => void
  readonly release: () => void
}

/** The time of a body from a used share of the budget on. */
interface Deadline {
  readonly fromShare: number
  readonly ms: number
}

interface BudgetLimits {
  readonly totalBytesMax: number
  readonly networkBytesMax: number
  /** The largest share first; the last one is 0. */
  readonly deadlines: ReadonlyArray<Deadline>
}

const defaultLimits: BudgetLimits = {
  totalBytesMax: bodiesBytesMax,
  networkBytesMax: networkBodiesBytesMax,
  deadlines: bodyDeadlines
}

/** The time of a body, in ms, when this share of the budget is used. */
export const deadlineMs = (
  share: number,
  deadlines: ReadonlyArray<Deadline> = bodyDeadlines
): number => deadlines.find(({ fromShare }) => share >= fromShare)?.ms ?? 0

/** Whether a body has had its time: as a document, or as a window without enough bytes. */
export const isLate = (
  { arrivedBytes, isPaused, isSteady, sinceMs }: Pick<
    Held,
    "arrivedBytes" | "isPaused" | "isSteady" | "sinceMs"
  >,
  nowMs: number,
  allowedMs: number
): boolean => {
  const tookMs = nowMs - sinceMs
  if (isPaused || tookMs < allowedMs) return false
  return !isSteady || arrivedBytes < uploadBytesPerSecondMin * tookMs / 1000
}

/** Blocks of memory that bodies use in turn, so that refused ones leave nothing to collect. */
class BlockPool {
  private free: Array<Buffer> = []

  take(): Buffer {
    return this.free.pop() ?? Buffer.allocUnsafeSlow(bodyBlockBytes)
  }

  give(blocks: ReadonlyArray<Buffer>): void {
    for (const block of blocks) this.free.push(block)
  }

  clear(): void {
    this.free = []
  }
}

export class BodyBudget {
  /** The memory of documents. */
  readonly blocks = new BlockPool()
  private readonly limits: BudgetLimits
  private readonly nowMs: () => number
  /** The oldest first. */
  private readonly held = new Set<Held>()
  private readonly networks = new Map<string, number>()
  private totalBytes = 0
  private awaited: (() => void) | undefined
  private timer: NodeJS.Timeout | undefined

  /** `nowMs` reads a clock that never goes backwards. */
  constructor(limits: BudgetLimits = defaultLimits, nowMs = () => performance.now()) {
    this.limits = limits
    this.nowMs = nowMs
  }

  /** Bytes of all unfinished bodies. */
  get bytes(): number {
    return this.totalBytes
  }

  /**
   * Calls `begin` if a body may still be unfinished: when the next one begins, or at a sweep. Most
   * bodies arrive with their header fields, and cost nothing.
   */
  expect(begin: () => void): void {
    const before = this.awaited
    this.awaited = begin
    if (before !== undefined) before()
    this.timer ??= setTimeout(this.turn, bodySweepMs).unref()
  }

  /** Begins to hold a body of a client in `network`. */
  hold(network: string, reception: Reception): HeldBody {
    const nowMs = this.nowMs()
    const body: Held = {
      ...reception,
      network,
      sinceMs: nowMs,
      keptMs: nowMs,
      arrivedBytes: 0,
      isPaused: false,
      bytes: 0
    }
    this.held.add(body)
    this.timer ??= setTimeout(this.turn, bodySweepMs).unref()
    return {
      resize: (bytes) => {
        if (!this.held.has(body)) return undefined
        const shortage = bytes > body.bytes ? this.makeRoom(body, bytes - body.bytes) : undefined
        if (shortage === undefined) this.count(body, bytes - body.bytes)
        return shortage
      },
      arrive: (bytes) => {
        body.arrivedBytes += bytes
      },
      pause: (isPaused) => {
        if (!isPaused) this.beginWindow(body)
        body.isPaused = isPaused
      },
      release: () => {
        if (this.held.delete(body)) this.count(body, -body.bytes)
      }
    }
  }

  /** Gives up the bodies that are late. */
  sweep(): void {
    const begin = this.awaited
    this.awaited = undefined
    begin?.()
    for (const body of this.held) {
      const nowMs = this.nowMs()
      const allowedMs = deadlineMs(this.shareOf(body), this.limits.deadlines)
      if (isLate(body, nowMs, allowedMs)) {
        body.giveUp(allowedMs)
        continue
      }
      if (body.isSteady && nowMs - body.sinceMs >= allowedMs) this.beginWindow(body)
      if (body.isPaused || nowMs - body.keptMs < bodyKeepMs) continue
      body.keptMs = nowMs
      body.keep()
    }
  }

  private readonly turn = (): void => {
    this.sweep()
    this.timer = undefined
    if (this.held.size === 0) return this.blocks.clear()
    this.timer = setTimeout(this.turn, bodySweepMs).unref()
  }

  private beginWindow(body: Held): void {
    if (!body.isSteady) return
    body.sinceMs = this.nowMs()
    body.arrivedBytes = 0
  }

  private count(body: Held, bytes: number): void {
    body.bytes += bytes
    this.totalBytes += bytes
    const sum = this.bytesOf(body.network) + bytes
    if (sum === 0) this.networks.delete(body.network)
    else this.networks.set(body.network, sum)
  }

  private bytesOf(network: string): number {
    return this.networks.get(network) ?? 0
  }

  /** The used share of the budget, or of the body's network if that is larger. */
  private shareOf({ network }: Held): number {
    const { networkBytesMax, totalBytesMax } = this.limits
    return Math.max(this.totalBytes / totalBytesMax, this.bytesOf(network) / networkBytesMax)
  }

  /** Makes room for `bytes` more, perhaps by giving up others; returns the limit if that fails. */
  private makeRoom(body: Held, bytes: number): Shortage | undefined {
    const { networkBytesMax, totalBytesMax } = this.limits
    const ofNetwork = () => this.bytesOf(body.network) + bytes <= networkBytesMax
    const ofAll = () => this.totalBytes + bytes <= totalBytesMax
    if (!ofNetwork()) this.giveUpLate(body, ofNetwork, ({ network }) => network === body.network)
    if (!ofNetwork()) return { of: body.network, bytesMax: networkBytesMax }
    if (!ofAll()) this.giveUpLate(body, ofAll, () => true)
    if (!ofAll()) this.takeFromLargest(body, bytes, ofAll)
    return ofAll() ? undefined : { of: "the service", bytesMax: totalBytesMax }
  }

  /** Gives up the bodies that would be late if the whole budget were used. */
  private giveUpLate(body: Held, isEnough: () => boolean, isMeant: (one: Held) => boolean): void {
    const nowMs = this.nowMs()
    const allowedMs = deadlineMs(1, this.limits.deadlines)
    for (const one of this.held) {
      if (isEnough()) return
      if (one !== body && isMeant(one) && isLate(one, nowMs, allowedMs)) {
        one.giveUp(allowedMs)
      }
    }
  }

  /** The network that uses most gives way, whatever their ages, to one that uses half as much. */
  private takeFromLargest(body: Held, bytes: number, isEnough: () => boolean): void {
    const wanted = this.bytesOf(body.network) + bytes
    let largest = body.network
    for (const [network, sum] of this.networks) {
      if (sum > this.bytesOf(largest)) largest = network
    }
    for (const one of this.held) {
      if (isEnough() || this.bytesOf(largest) < 2 * wanted) return
      if (one.network === largest && !one.isPaused) one.giveUp(this.nowMs() - one.sinceMs)
    }
  }
}
