/**
 * Every bound of the HTTP side. Bytes, counts and times, with the unit last in the name.
 * What an operator may change is repeated in the cluster configuration, which starts from these.
 */

/** Largest document (PROTOCOL §0). The operator's: `setDocumentLimits`. */
export let documentBytesMax = 256 * 1024
/** Deepest nesting of elements, the root counted (PROTOCOL §0). The operator's. */
export let xmlDepthMax = 32
/** Elements and pieces of text of one document together. */
export const xmlNodesMax = 20_000
/** Length of an element or attribute name. */
export const xmlNameCharsMax = 128
/** Attributes of one element. */
export const xmlAttributesMax = 64
/** Deepest nesting of values in a notification of JSON-LD, the root counted. */
export const linkedDataDepthMax = 32
/** Values of one notification of JSON-LD. */
export const linkedDataValuesMax = 20_000
/** Length of the description that is taken from JSON-LD. */
export const linkedDataTitleCharsMax = 1000
/** `to` elements of one notification (PROTOCOL §0). The operator's. */
export let recipientsMax = 1000
/** Length of one URI in a document or header. */
export const uriCharsMax = 2048
/** Length of a mailbox name or other slug (PROTOCOL §0). */
export const slugCharsMax = 64

/** Request line and header fields together (PROTOCOL §0). */
export const headerBlockBytesMax = 16 * 1024
/** Length of an Accept field that is read; longer ones are refused as malformed. */
export const acceptCharsMax = 2048
/** Media ranges of one Accept field that are looked at. */
export const acceptRangesMax = 64
/** Answers of negotiation that are remembered, for each set of offered types. */
export const acceptCacheMax = 256
/** Entity tags of one If-Match or If-None-Match field that are looked at. */
export const entityTagsMax = 64
/** Length of a request path. */
export const pathCharsMax = 2048
/** Segments of a request path. */
export const pathSegmentsMax = 16

/** Body of an HTML form. */
export const formBytesMax = 64 * 1024
/** Fields of an HTML form or of a query. */
export const formFieldsMax = 128

/** Entries of one page of a listing: when not asked, and at the most. */
export const pageEntriesDefault = 100
export const pageEntriesMax = 1000

/** Longest wait of a long poll (`Prefer: wait`), in seconds as in the field. */
export const longPollSecondsMax = 60
/** A comment is sent on a silent event stream this often. */
export const eventHeartbeatMs = 15_000
/** Unsent bytes at which an event stream's reader is given up. */
export const eventBufferBytesMax = 256 * 1024
/** Received bytes not yet taken by the handler at which an upload is paused. */
export const uploadBufferBytesMax = 256 * 1024
/** Time that a whole document body may take to arrive. */
export const bodyDeadlineMs = 20_000
/** A reader that takes nothing of a streamed answer for this long is given up. */
export const readerStallMs = 30_000
/** A refused body up to this size is read and thrown away, so that the connection can live on. */
export const refusedBodyBytesMax = 64 * 1024
/** Time for the last answers to leave the process before its connections are closed. */
export const drainGraceMs = 100

/** `Retry-After` of 503 when overloaded, and of 503 from a quarantined actor, in seconds. */
export const overloadedRetrySeconds = 1
export const quarantinedRetrySeconds = 60

const holds = (relation: boolean, name: string): void => {
  if (!relation) throw new Error(`http/limits.ts: ${name} does not hold`)
}
holds(pageEntriesDefault <= pageEntriesMax, "pageEntriesDefault <= pageEntriesMax")
holds(formBytesMax <= documentBytesMax, "formBytesMax <= documentBytesMax")
holds(pathCharsMax + acceptCharsMax < headerBlockBytesMax, "path and Accept fit the header block")
holds(eventHeartbeatMs < longPollSecondsMax * 1000, "heartbeat is shorter than a long poll")

/** Length of an Idempotency-Key. */
export const idempotencyKeyCharsMax = 255
/** Length of a message or mailbox password that is looked at. */
export const passwordCharsMax = 256
export const passwordCharsMin = 16
/** Tokens that were right lately, and addresses that had a wrong one, that a node remembers. */
export const provenTokensMax = 20_000
export const suspectsMax = 20_000
/** Accounts, and addresses, whose requests a node counts; of more, the least busy begin anew. */
export const ratedMax = 200_000
/** So long after it was right a request with a token counts for its account. */
export const countedTokenMs = 60_000
/** Addresses of one X-Forwarded-For field that are looked at, from its end. */
export const forwardedMax = 16
/** Length of a token's name, and how long a token may be valid. */
export const tokenLabelCharsMax = 100
export const tokenLifetimeMaxMs = 10 * 365 * 24 * 60 * 60 * 1000
/** Blobs that the sweep for orphans looks at together. */
export const sweepPageBlobs = 500
/** Where blobs may be arriving at other nodes, an orphan is this old at least. */
export const orphanAgeMs = 86_400_000
/** Length of a header value that is kept, such as Content-Type. */
export const headerValueCharsMax = 512

/** A feed is dated when its last entry is this old: dates are whole seconds, clocks differ. */
export const datedAfterMs = 5_000
/** Log numbers that a page of the newest looks back over, where most are removed. */
export const latestScannedMax = 10_000
/** Listings of mailboxes that are kept as they were shown, all together, in bytes. */
export const shownListingsBytesMax = 4 * 1024 * 1024
/** Length of a mailbox's title. */
export const titleCharsMax = 200
/** Items that an event stream or a search in a log reads at a time. */
export const eventItemsMax = 100
/** An open wait or event stream looks again after this time, should a hint have been lost. */
export const watchRecheckMs = 30_000
/** Actors that one listing asks at a time. */
export const askedAtOnceMax = 16

/** Length of the text that a cabinet's query looks for. */
export const containsCharsMax = 200
/** Notifications that one answer of a cabinet looks at, shown or not, at the most. */
export const cabinetScanItemsMax = 10_000
/** The same in characters of what is stored of them. */
export const cabinetScanCharsMax = 16 * 1024 * 1024
/** The fewest notifications that a cabinet reads of one mailbox at a time. */
export const cabinetChunkItemsMin = 10

/** Notifications of an outgoing mailbox that one request asks, and entries that it looks at. */
export const outgoingAskedMax = 1000
export const outgoingScannedMax = 10_000
/** Entries of an outgoing mailbox that are read at a time, when only some of them are wanted. */
export const outgoingEntriesMin = 100
/** A notification is queued so long after its entry was made, at the most. */
export const queueDelayMaxMs = 60_000
/** An entry whose notification was not queued for this long never will be. */
export const abandonedEntryMs = 24 * 60 * 60 * 1000
/** Time between two events of one notification's stream: what changes meanwhile is told once. */
export const statusEventPauseMs = 100

/** How often an open page without an event stream looks whether it has changed. */
export const pageRefreshMs = 3_000

/** What a WebSub subscriber may choose (§5.1): bytes of its secret, seconds of its lease. */
export const subscriberSecretBytesMax = 199
export const leaseSecondsDefault = 10 * 24 * 60 * 60
export const leaseSecondsMax = 30 * 24 * 60 * 60

/** Text that an href answer of a session may refer to, and references followed to reach it. */
export const referredBytesMax = 8 * 1024
export const referenceHopsMax = 4
/** How long a fixed file may be kept without asking again. */
export const fixedMaxAgeSeconds = 24 * 60 * 60

/** The bounds of documents that the operator chose; set once, before the first request. */
export const setDocumentLimits = (chosen: {
  readonly documentBytesMax: number
  readonly xmlDepthMax: number
  readonly recipientsMax: number
}): void => {
  holds(formBytesMax <= chosen.documentBytesMax, "formBytesMax <= documentBytesMax")
  documentBytesMax = chosen.documentBytesMax
  xmlDepthMax = chosen.xmlDepthMax
  recipientsMax = chosen.recipientsMax
}
