/** Places for work that takes long: a node has a number for each client network, and for all. */
import type { HttpRequest } from "../wire/index.ts"
import type { Clients } from "./client-address.ts"
import type { Excess } from "./rate-limiter.ts"

/** A place that was taken, or the limit that is reached. */
export type NetworkPlace =
  | { readonly _tag: "Taken"; readonly release: () => void }
  | { readonly _tag: "NetworkFull"; readonly excess: Excess }
  | { readonly _tag: "Full"; readonly detail: string; readonly retryMs: number }

export interface PlaceLimits {
  readonly totalMax: number
  readonly perNetworkMax: number
  /** Whether a client on this machine needs no place. */
  readonly isLocalFree?: boolean
}

/** How a refusal names the places. */
export interface PlaceNames {
  readonly policy: string
  /** What has taken `count` places. */
  readonly taken: (count: number) => string
  readonly advice: string
  readonly retryMs: number
}

export class NetworkPlaces {
  private readonly clients: Clients
  private readonly limits: PlaceLimits
  private readonly names: PlaceNames
  private readonly networks = new Map<string, number>()
  private total = 0

  constructor(clients: Clients, limits: PlaceLimits, names: PlaceNames) {
    this.clients = clients
    this.limits = limits
    this.names = names
  }

  /** Taken places of this node. */
  get size(): number {
    return this.total
  }

  /**
   * Takes a place for a request, until `release`. A client on this machine has only `totalMax`, or
   * no limit at all.
   */
  take(request: Pick<HttpRequest, "headers" | "remoteAddress">): NetworkPlace {
    const { isLocalFree = false, perNetworkMax, totalMax } = this.limits
    const { advice, policy, retryMs, taken } = this.names
    const { isLocal, network } = this.clients.clientOf(request)
    if (isLocal && isLocalFree) return { _tag: "Taken", release: () => {} }
    const used = this.networks.get(network) ?? 0
    if (!isLocal && used >= perNetworkMax) {
      const detail = `the clients of ${network} have ${taken(perNetworkMax)} at this node, which ` +
        `is the limit of a network: ${advice}`
      return { _tag: "NetworkFull", excess: { policy, detail, waitMs: retryMs } }
    }
    if (this.total >= totalMax) {
      const detail = `all clients together have ${taken(totalMax)} at this node, which is the ` +
        `limit of the service: ${advice}`
      return { _tag: "Full", detail, retryMs }
    }
    this.total += 1
    this.networks.set(network, used + 1)
    let isTaken = true
    return {
      _tag: "Taken",
      release: () => {
        if (isTaken) this.give(network)
        isTaken = false
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
