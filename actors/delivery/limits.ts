/** Every bound of delivery: times in ms, counts, bytes and characters, with the unit last. */

/** The bounds that an operator, or a test, may set. */
export interface DeliveryLimits {
  /** Name, TCP and TLS together (protocol §1.3). */
  readonly connectMs: number
  /** One attempt with all its hops, waiting for turns left out (protocol §1.3). */
  readonly attemptMs: number
  /** What is left of an answer whose body nobody needs is read for so long. */
  readonly drainMs: number
  /** The next address is tried beside the ones before it (RFC 8305 §5). */
  readonly nextAddressMs: number
  /** One question to one name server, and how often it is asked. */
  readonly nameMs: number
  readonly nameTries: number
  /** Attempts in flight: to one origin (protocol §1.3), and of this node. */
  readonly perOriginMax: number
  readonly inFlightMax: number
  /** Attempts that wait for their turn: for one origin, of this node, and for how long. */
  readonly waitingPerOriginMax: number
  readonly waitingMax: number
  readonly waitMs: number
  /** A full lane is looked at again after so long; by so many in a second, when it is served. */
  readonly fullRetryMs: number
  readonly fullReturnsPerSecond: number
  /** Faults in a row that open an origin's circuit; how long it opens first, and at most. */
  readonly faultsMax: number
  readonly openMs: number
  readonly openMaxMs: number
  /** Deferred attempts that come back in a second, of this node. */
  readonly deferredPerSecond: number
  /** Origins that are remembered while nothing is under way to them. */
  readonly originsMax: number
  /** Open connections, above which none is kept for the next request. */
  readonly connectionsKeptMax: number
}

export const deliveryLimits: DeliveryLimits = {
  connectMs: 5_000,
  attemptMs: 30_000,
  drainMs: 2_000,
  nextAddressMs: 250,
  nameMs: 1_500,
  nameTries: 2,
  perOriginMax: 8,
  inFlightMax: 256,
  waitingPerOriginMax: 4_096,
  waitingMax: 16_384,
  waitMs: 30_000,
  fullRetryMs: 1_000,
  fullReturnsPerSecond: 2_500,
  faultsMax: 10,
  openMs: 1_000,
  openMaxMs: 60_000,
  deferredPerSecond: 1_000,
  originsMax: 10_000,
  connectionsKeptMax: 1_024
}

/** Bytes of an answer's body that are read when only its head counts (protocol §1.3). */
export const answerBytesMax = 64 * 1024
/** Bytes of an answer's header block. */
export const answerHeadBytesMax = 16 * 1024
/** Redirects that are followed (protocol §1.3). */
export const redirectsMax = 3
/** Characters of a URI that is asked or given on. */
export const uriCharsMax = 8_192
/** URIs of which is remembered where they lead to, twice as many, and how long they may be. */
export const rememberedTargetsMax = 1_024
export const rememberedUriCharsMax = 512
/** Addresses of one name that are tried. */
export const addressesMax = 8
/** An idle connection is kept so long, and so long at most when the peer offers more. */
export const keepAliveMs = 4_000
export const keepAliveMaxMs = 30_000
/** Deferred attempts are spread by up to so much more. */
export const deferredJitterMs = 100
/** A file of settings is looked at again after so long; more bytes than this are not read. */
export const settingsFreshMs = 1_000
export const settingsBytesMax = 1024 * 1024

/** The limits with some of them set otherwise. A relation that does not hold is a defect. */
export const makeDeliveryLimits = (given: Partial<DeliveryLimits> = {}): DeliveryLimits => {
  const limits = { ...deliveryLimits, ...given }
  const holds = (relation: boolean, what: string): void => {
    if (!relation) throw new RangeError(`delivery limits: ${what} does not hold`)
  }
  holds(limits.connectMs <= limits.attemptMs, "connecting fits an attempt")
  holds(limits.perOriginMax <= limits.inFlightMax, "an origin's attempts fit the node")
  holds(limits.waitingPerOriginMax <= limits.waitingMax, "an origin's queue fits the node's")
  holds(limits.openMs <= limits.openMaxMs, "a circuit's first opening is its shortest")
  for (const [name, value] of Object.entries(limits)) {
    holds(Number.isInteger(value) && value > 0, `${name} is a whole number above 0`)
  }
  return limits
}
