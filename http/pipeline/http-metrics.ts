/**
 * The counters of the HTTP side: requests by route, method and class of status, and their times.
 * The metrics of deliveries are types only: `actors/` counts them.
 */
import { Histogram } from "../../runtime/index.ts"

/** Upper bounds of the histogram; one more bucket counts all longer requests. */
const durationBoundsMs = [1, 2, 5, 10, 20, 50, 100, 250, 500, 1_000, 5_000]

export interface RouteMetrics {
  readonly method: string
  readonly route: string
  /** Requests by status class: 2 for 2xx. */
  readonly classes: Map<number, number>
  /** ms from the head of a request to its answer. */
  readonly durationMs: Histogram
}

export class HttpMetrics {
  readonly routes = new Map<string, RouteMetrics>()
  /** Requests that exceeded a rate limit, by policy. */
  readonly rateLimited = { address: 0, account: 0 }

  /** The metrics of one route and method; a caller that counts often stores the result. */
  forRoute(method: string, route: string): RouteMetrics {
    const key = `${method} ${route}`
    let found = this.routes.get(key)
    if (found === undefined) {
      found = { method, route, classes: new Map(), durationMs: new Histogram(durationBoundsMs) }
      this.routes.set(key, found)
    }
    return found
  }
}

/** Adds one answered request. */
export const countRequest = (metrics: RouteMetrics, status: number, durationMs: number): void => {
  const statusClass = Math.floor(status / 100)
  metrics.classes.set(statusClass, (metrics.classes.get(statusClass) ?? 0) + 1)
  metrics.durationMs.observe(durationMs)
}

/** The outbound requests to one origin. */
export interface OriginDeliveryMetrics {
  readonly origin: string
  readonly inFlight: number
  readonly waiting: number
  readonly oldestWaitingMs: number
  /** Whether the circuit breaker is open or half-open. */
  readonly circuitOpen: boolean
}

/** Reads the state of outbound requests. */
export interface OutboundStatus {
  readonly metrics: () => DeliveryMetrics
  /** The origins with an open circuit first, then those with the most requests. */
  readonly busiestOrigins: (max: number) => ReadonlyArray<OriginDeliveryMetrics>
}

/** The outbound requests. `outcomes` are totals, by name; all others are current values. */
export interface DeliveryMetrics {
  readonly outcomes: Readonly<Record<string, number>>
  /** Current requests. */
  readonly inFlight: number
  /** Requests that wait for a permit of their origin, and the wait of the oldest. */
  readonly waiting: number
  readonly oldestWaitingMs: number
  readonly circuitsOpen: number
  readonly connections: number
}
