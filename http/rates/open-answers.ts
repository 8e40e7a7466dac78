/**
 * Answers that stay open for their client: event streams and long polls (protocol §7). A node has
 * a number of them for each client network, and for all together, since each takes memory.
 */
import { openAnswerRecheckMs, openAnswerRetryMs, openAnswersMax,
  openAnswersPerNetworkMax } from "../limits.ts"
import type { HttpRequest } from "../wire/index.ts"
import type { Clients } from "./client-address.ts"
import type { Excess } from "./rate-limiter.ts"

/** A place that was taken, or the limit that is reached. */
export type OpenAnswerPlace =
  | { readonly _tag: "Taken"; readonly release: () => void }
  | { readonly _tag: "NetworkFull"; readonly excess: Excess }
  | { readonly _tag: "Full"; readonly detail: string; readonly retryMs: number }

interface OpenAnswerLimits {
  readonly totalMax: number
  readonly perNetworkMax: number
  /** How long an answer stays open without a new check of its client. */
  readonly recheckMs: number
}

const defaultLimits: OpenAnswerLimits = {
  totalMax: openAnswersMax,
  perNetworkMax: openAnswersPerNetworkMax,
  recheckMs: openAnswerRecheckMs
}

const advice = `close one, or repeat the request in ${openAnswerRetryMs / 1000} s`

export class OpenAnswers {
  private readonly clients: Clients
  private readonly limits: OpenAnswerLimits
  private readonly networks = new Map<string, number>()
  private total = 0

  constructor(clients: Clients, limits: Partial<OpenAnswerLimits> = {}) {
    this.clients = clients
    this.limits = { ...defaultLimits, ...limits }
  }

  /** How long an answer stays open without a new check of its client. */
  get recheckMs(): number {
    return this.limits.recheckMs
  }

  /** Open answers of this node. */
  get size(): number {
    return this.total
  }

  /** Takes a place for the answer to a request, until `release`. */
  take(request: Pick<HttpRequest, "headers" | "remoteAddress">): OpenAnswerPlace {
    const { perNetworkMax, totalMax } = this.limits
    const { isLocal, network } = this.clients.clientOf(request)
    const open = this.networks.get(network) ?? 0
    if (!isLocal && open >= perNetworkMax) {
      const detail = `the clients of ${network} have ${perNetworkMax} event streams and long ` +
        `polls open at this node, which is the limit of a network: ${advice}`
      return {
        _tag: "NetworkFull",
        excess: { policy: "open-answers", detail, waitMs: openAnswerRetryMs }
      }
    }
    if (this.total >= totalMax) {
      const detail = `${totalMax} event streams and long polls are open at this node, which is ` +
        `the limit of the service: ${advice}`
      return { _tag: "Full", detail, retryMs: openAnswerRetryMs }
    }
    this.total += 1
    this.networks.set(network, open + 1)
    let isOpen = true
    return {
      _tag: "Taken",
      release: () => {
        if (isOpen) this.give(network)
        isOpen = false
      }
    }
  }

  private give(network: string): void {
    this.total -= 1
    const left = (this.networks.get(network) ?? 0) - 1
    if (left > 0) this.networks.set(network, left)
    else this.networks.delete(network)
  }
}
