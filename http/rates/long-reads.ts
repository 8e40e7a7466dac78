/**
 * Reads that take long (protocol §7): scans of rows by stored queries, listings that ask an actor
 * for each entry, and searches of texts. One may take a second of processor time: a node runs a
 * number of each sort at once for each client network, and for all together, so that other requests
 * go on.
 */
import { docsSearchesMax, docsSearchesPerNetworkMax, longReadRetryMs, longReadsMax,
  longReadsPerNetworkMax } from "../limits.ts"
import type { Clients } from "./client-address.ts"
import { NetworkPlaces, type PlaceLimits, type PlaceNames } from "./network-places.ts"

class LongReads extends NetworkPlaces {
  constructor(
    clients: Clients,
    limits: Partial<PlaceLimits>,
    names: Pick<PlaceNames, "policy" | "taken">
  ) {
    super(
      clients,
      { totalMax: longReadsMax, perNetworkMax: longReadsPerNetworkMax, ...limits },
      {
        ...names,
        advice: `repeat the request in ${longReadRetryMs / 1000} s`,
        retryMs: longReadRetryMs
      }
    )
  }
}

export class RowScans extends LongReads {
  constructor(clients: Clients, limits: Partial<PlaceLimits> = {}) {
    super(clients, limits, {
      policy: "row-scans",
      taken: (count) => `${count} queries running`
    })
  }
}

/** Listings and searches. A client on this machine needs no place for them. */
export class ActorListings extends LongReads {
  constructor(clients: Clients, limits: Partial<PlaceLimits> = {}) {
    super(clients, { isLocalFree: true, ...limits }, {
      policy: "actor-listings",
      taken: (count) => `${count} listings running`
    })
  }
}

export class TextSearches extends LongReads {
  constructor(clients: Clients, limits: Partial<PlaceLimits> = {}) {
    super(clients, { isLocalFree: true, ...limits }, {
      policy: "text-searches",
      taken: (count) => `${count} searches running`
    })
  }
}

/** Searches in the documentation: strangers with all of its places keep none from an account. */
export class DocsSearches extends LongReads {
  constructor(clients: Clients, limits: Partial<PlaceLimits> = {}) {
    const own = { totalMax: docsSearchesMax, perNetworkMax: docsSearchesPerNetworkMax }
    super(clients, { ...own, isLocalFree: true, ...limits }, {
      policy: "docs-searches",
      taken: (count) => `${count} searches in the documentation running`
    })
  }
}
