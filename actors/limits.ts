/** Every bound of delivery: times in ms, counts, bytes and characters, with the unit last. */
/**
 * Every bound of the behaviors. Counts, characters and times, with the unit last in the name.
 */

const hourMs = 60 * 60 * 1000

/** Notifications that one mailbox keeps at a time, unless the operator says otherwise. */
export const notificationsMaxDefault = 2_000_000

/** The last so many notifications of a mailbox in which a repeated document is recognized. */
export const repeatedAmongItems = 1000

/** Log items that one decision removes: a commit must fit one batch of every store. */
export const removalsMax = 500

/** Ranges in which a mailbox remembers what has been retrieved, and when. */
export const retrievedRangesMax = 256

/** A retention is split into so many steps; retrievals within one step are one range. */
export const retentionSteps = 100

/** Ranges in which a mailbox remembers what has been removed. */
export const goneRangesMax = 1000

/** Push registrations of one mailbox. */
export const registrationsMax = 256

/** Notifications whose receipts one decision begins: each is a timer in its commit. */
export const retrievedAtOnceMax = 256

/** Removals that one event of a mailbox's log tells of. */
export const removalsPerEvent = 100

/** Events of removal are kept so long, whatever the retention, for registrations to be told. */
export const eventKeepMs = 7 * 24 * hourMs

/** Log items read at a time for it. */
export const expiryReadItems = 50

/** A read of what has expired is begun again after so long, when it was lost. */
export const expiryReadMs = 10_000

/** Log items that one push carries, and characters of them (the first one always fits). */
export const pushItemsMax = 100

export const pushCharsMax = 1024 * 1024

/** Items read at a time to fill a push, so that it never takes much more memory than it holds. */
export const pushReadItems = 20

/** What was read of mailboxes for pushes is kept so long, and so much of it, for others. */
export const batchFreshMs = 1_000

export const batchesCharsMax = 8 * pushCharsMax

/** A push, a verification or a look that was lost is begun again after so long. */
export const registrationLeaseMs = 120_000

/** Attempts to verify a callback; then it stays unverified until somebody asks again. */
export const verificationsMax = 5

/** Bytes of a callback's answer to a challenge that are read. */
export const challengeBytesMax = 4096

/** A registration that fails for so long is suspended. */
export const failingMaxMs = 7 * 24 * hourMs

/** How long an older secret signs too. */
export const rotationMs = 24 * hourMs

/** Secrets of one registration that sign at a time. */
export const registrationSecretsMax = 4

/** So long after its making a registration may be unknown to its mailbox. */
export const registeringMs = 60_000

/** Wrong passwords from one address within the window, then 429 (protocol §1.1). */
export const wrongTriesMax = 10

/** Wrong tokens of accounts from one address, and for one account from all, likewise. */
export const wrongTokensMax = 30

export const wrongAccountTriesMax = 100

export const wrongTriesWindowMs = 60_000

/** Length of one answer of a session. */
export const answerCharsMax = 8192

/** Receipts kept for one content resource. */
export const receiptsMax = 1000

/** Blobs of one content resource that wait for their removal. */
export const staleBlobsMax = 64

/** A removal of blobs that was not confirmed is tried again after this time. */
export const blobRemovalRetryMs = 60_000

/** Mailboxes of one cabinet. */
export const cabinetMailboxesMax = 100

/** Tokens of one account that have not expired. */
export const accountTokensMax = 16

/** The records of expired tokens that could not be removed are tried again after so long. */
export const tokenRemovalRetryMs = 60_000

/** A background task whose attempt was lost is repeated after this time. */
export const backgroundTaskLeaseMs = 120_000

/** An attempt that met a store or actor away is made again after so long. */
export const unavailableRetryMs = 1_000

/** Bytes of a fetched copy: unless the mailbox says otherwise, and at the most. */
export const cachedBytesDefault = 1024 * 1024

export const cachedBytesMax = 16 * 1024 * 1024

/** Bytes that all fetches under way may hold, and in what portions they take them. */
export const fetchBytesInFlightMax = 128 * 1024 * 1024

export const fetchPermitBytes = 64 * 1024

/** Attempts of one outgoing notification that are under way at once. */
export const attemptsAtOnceMax = 32

/** An attempt at a recipient that was lost is made again after so long. */
export const attemptLeaseMs = 120_000

/** A deferred attempt is made again after so long at the least. */
export const deferredMinMs = 100

/** A deferral that ends within this time is kept in memory only. */
export const deferredInMemoryMs = 110_000

/** With more recipients than this, what attempts come to is logged, and the record left. */
export const recipientsInlineMax = 16

/** So many logged results are then taken into the record at once. */
export const resultsFoldedAt = 64

/** Characters of the largest document that is cached for its attempts. */
export const cachedDocumentCharsMax = 4096

/** Characters of all cached documents of a node. */
export const cachedDocumentsCharsMax = 4 * 1024 * 1024

/** Characters of documents that the running attempts of a node have read. */
export const documentCharsInFlightMax = 64 * 1024 * 1024

/** Characters of an answer's Location, and of a problem, that a recipient's record keeps. */
export const locationCharsMax = 2048

export const problemCharsMax = 500

/** Hints of how notifications stand: gathered for so long, written at once, waiting at most. */
export const notesGatherMs = 50

export const notesAtOnceMax = 500

export const notesWaitingMax = 10_000

/** How long an answer is kept for its idempotency key. */
export const idempotencyKeepMs = 24 * hourMs

/** An attempt that has neither ended nor been given up after this time is held to be lost. */
export const idempotencyAttemptMs = 60_000

const holds = (relation: boolean, name: string): void => {
  if (!relation) throw new Error(`actors/limits.ts: ${name} does not hold`)
}

holds(retentionSteps < retrievedRangesMax, "a retention's steps fit the ranges")

holds(repeatedAmongItems <= notificationsMaxDefault, "a mailbox holds what it compares with")

holds(removalsPerEvent <= removalsMax, "an event tells of removals of one decision")

holds(resultsFoldedAt < removalsMax, "logged results are removed in one decision")

holds(deferredInMemoryMs < attemptLeaseMs, "a deferral ends before its attempt counts as lost")

holds(notesAtOnceMax <= notesWaitingMax, "hints that are written have waited")

holds(wrongTokensMax < wrongAccountTriesMax, "one address alone does not slow an account")

holds(pushReadItems <= pushItemsMax, "a push is read in parts")

holds(idempotencyAttemptMs < idempotencyKeepMs, "an attempt is shorter than a key's life")

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
  readonly fullRetriesPerSecond: number
  /** Faults in a row that open an origin's circuit; how long it opens first, and at most. */
  readonly failuresMax: number
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
  fullRetriesPerSecond: 2_500,
  failuresMax: 10,
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

/** URIs whose destination is cached, and the longest URI that is cached. */
export const destinationsCachedMax = 2_048

export const cachedUriCharsMax = 512

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
