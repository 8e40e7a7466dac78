/**
 * The memory that unfinished bodies of documents may take at this node: all together, and those of
 * one client network (protocol §7). A body that arrives in one piece takes none. When there is no
 * room, bodies that take long are given up first; a new one is refused only if there is none.
 */
import { bodiesBytesMax, networkBodiesBytesMax, pressedBodyMs } from "../limits.ts"

/** One unfinished body. */
interface Held {
  readonly network: string
  readonly sinceMs: number
  readonly giveUp: () => void
  bytes: number
}

/** The part of the budget that one body takes. */
export interface HeldBody {
  /** Takes room for more bytes; false if there is none. */
  readonly grow: (bytes: number) => boolean
  readonly release: () => void
}

interface BudgetLimits {
  readonly totalBytesMax: number
  readonly networkBytesMax: number
  /** The age from which a body may be given up for another one, in ms. */
  readonly pressedMs: number
}

const defaultLimits: BudgetLimits = {
  totalBytesMax: bodiesBytesMax,
  networkBytesMax: networkBodiesBytesMax,
  pressedMs: pressedBodyMs
}

export class BodyBudget {
  private readonly limits: BudgetLimits
  private readonly nowMs: () => number
  /** The oldest first. */
  private readonly held = new Set<Held>()
  private readonly networks = new Map<string, number>()
  private totalBytes = 0

  /** `nowMs` reads a clock that never goes backwards. */
  constructor(limits: BudgetLimits = defaultLimits, nowMs = () => performance.now()) {
    this.limits = limits
    this.nowMs = nowMs
  }

  /** Bytes of all unfinished bodies. */
  get bytes(): number {
    return this.totalBytes
  }

  /** Begins to hold a body of a client in `network`. `giveUp` ends it, and so releases it. */
  hold(network: string, giveUp: () => void): HeldBody {
    const body: Held = { network, giveUp, sinceMs: this.nowMs(), bytes: 0 }
    this.held.add(body)
    return {
      grow: (bytes) => {
        if (!this.held.has(body) || !this.hasRoom(body, bytes)) return false
        this.count(body, bytes)
        return true
      },
      release: () => {
        if (this.held.delete(body)) this.count(body, -body.bytes)
      }
    }
  }

  private count(body: Held, bytes: number): void {
    body.bytes += bytes
    this.totalBytes += bytes
    const sum = (this.networks.get(body.network) ?? 0) + bytes
    if (sum === 0) this.networks.delete(body.network)
    else this.networks.set(body.network, sum)
  }

  /** Whether there is room, perhaps after older bodies are given up. */
  private hasRoom(body: Held, bytes: number): boolean {
    const { networkBytesMax, totalBytesMax } = this.limits
    const ofNetwork = () => (this.networks.get(body.network) ?? 0) + bytes <= networkBytesMax
    const ofAll = () => this.totalBytes + bytes <= totalBytesMax
    if (!ofNetwork()) this.giveUpOld(body, ofNetwork, ({ network }) => network === body.network)
    if (!ofAll()) this.giveUpOld(body, ofAll, () => true)
    return ofNetwork() && ofAll()
  }

  private giveUpOld(body: Held, isEnough: () => boolean, isMeant: (one: Held) => boolean): void {
    const latestMs = this.nowMs() - this.limits.pressedMs
    for (const one of [...this.held]) {
      if (one.sinceMs > latestMs || isEnough()) return
      if (one !== body && isMeant(one)) one.giveUp()
    }
  }
}
