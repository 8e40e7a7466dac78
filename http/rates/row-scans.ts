/**
 * Scans of rows by stored queries (protocol §7). One may take a second of processor time: a node
 * runs a number of them at once for each client network, and for all together, so that other
 * requests go on.
 */
import { rowScanRetryMs, rowScansMax, rowScansPerNetworkMax } from "../limits.ts"
import type { Clients } from "./client-address.ts"
import { NetworkPlaces, type PlaceLimits } from "./network-places.ts"

export class RowScans extends NetworkPlaces {
  constructor(clients: Clients, limits: Partial<PlaceLimits> = {}) {
    super(
      clients,
      { totalMax: rowScansMax, perNetworkMax: rowScansPerNetworkMax, ...limits },
      {
        policy: "row-scans",
        taken: (count) => `${count} queries running`,
        advice: `repeat the request in ${rowScanRetryMs / 1000} s`,
        retryMs: rowScanRetryMs
      }
    )
  }
}
