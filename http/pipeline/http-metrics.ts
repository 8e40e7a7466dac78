/** The counters of the HTTP side: requests by route, method and status class, and their times. */
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
  /** Requests that exceeded a quota of content, by quota. */
  readonly overQuota = { anonymous: 0, network: 0, account: 0 }

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
