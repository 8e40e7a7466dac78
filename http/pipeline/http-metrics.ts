/**
 * What the HTTP side counts: requests by route, method and class of status, and their times; and
 * what it shows of the deliveries, which are counted elsewhere.
 */
/** Upper bounds in ms; the last count is of all above. */
export const durationBoundsMs: ReadonlyArray<number> = [
  1,
  2,
  5,
  10,
  20,
  50,
  100,
  250,
  500,
  1_000,
  5_000
]

export interface RouteMetrics {
  readonly method: string
  readonly route: string
  /** Requests by status class: 2 for 2xx. */
  readonly classes: Map<number, number>
  readonly counts: Array<number>
  count: number
  sumMs: number
}

export class HttpMetrics {
  readonly routes = new Map<string, RouteMetrics>()
  /** Requests refused by the limits on rates, by policy. */
  readonly rateLimited = { address: 0, account: 0 }

  /** The measures of one route and method, to be kept by whoever counts often. */
  forRoute(method: string, route: string): RouteMetrics {
    const key = `${method} ${route}`
    let found = this.routes.get(key)
    if (found === undefined) {
      const counts = Array.from({ length: durationBoundsMs.length + 1 }, () => 0)
      found = { method, route, classes: new Map(), counts, count: 0, sumMs: 0 }
      this.routes.set(key, found)
    }
    return found
  }
}

/** Adds one answered request. */
export const countRequest = (measures: RouteMetrics, status: number, durationMs: number): void => {
  const statusClass = Math.floor(status / 100)
  measures.classes.set(statusClass, (measures.classes.get(statusClass) ?? 0) + 1)
  let at = 0
  while (at < durationBoundsMs.length && durationMs > (durationBoundsMs[at] ?? 0)) at++
  measures.counts[at] = (measures.counts[at] ?? 0) + 1
  measures.count++
  measures.sumMs += durationMs
}

/** How outbound requests to one origin stand. */
export interface OriginDeliveryMetrics {
  readonly origin: string
  readonly inFlight: number
  readonly waiting: number
  readonly oldestWaitingMs: number
  /** It is left alone after failures, or probed. */
  readonly circuitOpen: boolean
}

/** What is known of outbound requests. */
export interface OutboundStatus {
  readonly metrics: () => DeliveryMetrics
  /** The origins that are in trouble or have most to do, those first. */
  readonly busiestOrigins: (max: number) => ReadonlyArray<OriginDeliveryMetrics>
}

/** How outbound requests stand. Outcomes are totals, by name; the others are as of now. */
export interface DeliveryMetrics {
  readonly outcomes: Readonly<Record<string, number>>
  /** Requests under way. */
  readonly inFlight: number
  /** Requests that wait for their turn at an origin, and the oldest of them. */
  readonly waiting: number
  readonly oldestWaitingMs: number
  readonly circuitsOpen: number
  readonly connections: number
}
