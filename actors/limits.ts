/** Every bound of the actors and of outbound requests. Names end in their unit. */

const hourMs = 60 * 60 * 1000

/** Notifications that one mailbox keeps at a time, unless the operator sets another bound. */
export const notificationsMaxDefault = 2_000_000

/** A mailbox recognizes a repeated document among this many last notifications. */
export const deduplicationWindowItems = 1000

/** Log items that one decision removes at most: its commit must fit one batch of every store. */
export const removalsMax = 500

/** Bytes of strangers' notifications that wait in a mailbox, unless the operator sets others. */
export const mailboxAnonymousBytesDefault = 256 * 1024 * 1024

/** What such a notification counts beside its bytes: its place in the log. */
export const waitingOverheadBytes = 128

/** Items after which a mailbox stores its count of them; a crash loses none, see below. */
export const waitingSavedItems = 256

/** Parts of the log that a mailbox counts on their own, in its record. */
export const waitingPartsMax = 64

/** Ranges of retrieved notifications that a mailbox remembers. */
export const retrievedRangesMax = 256

/** Steps of a retention; retrievals within one step are one range. */
export const retentionSteps = 100

/** Ranges of removed notifications that a mailbox remembers. */
export const removedRangesMax = 1000

/** Removed local deliveries that a mailbox remembers, in its record. */
export const removedLocalDeliveriesMax = 200

/**
 * How long a mailbox recognizes a repetition of a removed local delivery: longer than the longest
 * wait of the default retry schedule, 24 hours and 20 % of jitter.
 */
export const removedLocalDeliveryRetentionMs = 30 * hourMs

/** Ranges of notifications that a mailbox remembers as read; beyond, the oldest count as unread. */
export const readRangesMax = 256

/** Push registrations of one mailbox. */
export const registrationsMax = 256

/**
 * Those of browsers of one site (its domain, or its network), unless it is a known push service:
 * nothing has verified their endpoints, and each change would be so many requests to a victim.
 */
export const originBrowsersMax = 16

/** How often in a minute pushes to the endpoint of a browser may go back to earlier changes. */
export const browserReplaysPerMinuteMax = 6

/** Retrieved notifications that one decision signals receipts for. */
export const retrievedPerDecisionMax = 256

/** Removals in one event of a mailbox's log. */
export const removalsPerEvent = 100

/** How long removal events are kept at least, so that registrations can push them. */
export const eventRetentionMs = 7 * 24 * hourMs

/** Log items that one read of expired notifications returns. */
export const expiryReadItems = 50

/** A lost read of expired notifications is repeated after this time. */
export const expiryReadRetryMs = 10_000

/** Log items that one push carries, and characters of them (the first one always fits). */
export const pushItemsMax = 100

export const pushCharsMax = 1024 * 1024

/** Items of one read for a push: a push needs little more memory than it carries. */
export const pushReadItems = 20

/** How long a batch of changes is cached for other registrations, and characters of all. */
export const batchFreshMs = 1_000

export const batchesCharsMax = 8 * pushCharsMax

/** Bytes of the document that one Web Push carries, before its encryption. */
export const webPushBytesMax = 3_000

/** Bytes of an encrypted push, which every push service accepts (RFC 8030 §7.2). */
export const webPushRecordBytes = 4_096

/** Bytes that the encryption adds: its header with a key, the delimiter and the tag (RFC 8188). */
export const webPushOverheadBytes = 16 + 4 + 1 + 65 + 1 + 16

/** How long a push service keeps a push for a browser that is offline. */
export const webPushTtlSeconds = 7 * 24 * 3_600

/** How long a VAPID token is valid: 24 hours at most (RFC 8292 §2), less the skew of clocks. */
export const vapidLifetimeMs = 12 * hourMs

/** A lost push, verification or check is repeated after this time. */
export const registrationLeaseMs = 120_000

/**
 * Attempts to verify a callback; then it stays unverified until its owner updates it, a WebSub
 * subscription for {@link failingMaxMs} at most.
 */
export const verificationsMax = 5

/** Bytes of a callback's response to a challenge that are read. */
export const challengeBytesMax = 4096

/** A registration whose pushes fail for this time is suspended. */
export const failingMaxMs = 7 * 24 * hourMs

/** Keys that a node decrypts stored secrets with: the current one, and those before it. */
export const secretKeysMax = 8

/** Length of such a key, and of each key derived from it. */
export const secretKeyBytes = 32

/** Length of a page of the key stream that encrypts stored secrets. */
export const streamPageBytes = 16 * 1024

/** Pages that decrypt, for each purpose and key: the memory of a node for them is 1 MiB each. */
export const streamPagesMax = 64

/** Opened texts that a node keeps in memory, some 300 bytes each. */
export const openedTextsMax = 10_000

/** Longer sealed texts are opened each time. */
export const openedCharsMax = 256

/** Attempts of one registration that its log keeps, and characters of them in all. */
export const attemptsKeptMax = 50

export const attemptsKeptCharsMax = 64 * 1024

/** Characters of one attempt in the log; without the text of the answer it has fewer. */
export const attemptCharsMax = 16 * 1024

/** Failure reports of each cause that an account gets in an hour (actors/failure-reports). */
export const failureReportsPerHourMax = 20

/** Those of registrations that secrets of its mailboxes have allowed, in a day. */
export const readersReportsPerDayMax = 4

/** A registration reports a suspension once in this time, however often it is lifted. */
export const failureReportIntervalMs = 24 * hourMs

/** Characters of a failure report's description. */
export const failureReportCharsMax = 1_000

/** A lost step of a failure report is repeated after this time; later ones after more, at most: */
export const failureReportLeaseMs = 120_000

export const failureReportRetryMaxMs = hourMs

/**
 * A failure report that cannot be deposited is dropped after this time: before the mailbox forgets
 * the deposits that may be repeated.
 */
export const failureReportGiveUpMs = 24 * hourMs

/** How long a node remembers whether an account wants failure reports, and of how many accounts. */
export const reportsLookupFreshMs = 10_000

export const reportsLookupsMax = 10_000

/** How long the previous secret signs beside the new one. */
export const secretOverlapMs = 24 * hourMs

/** Secrets of one registration that sign at the same time. */
export const registrationSecretsMax = 4

/** Test events of one registration in a minute: they must not serve to burden a callback. */
export const testsPerMinuteMax = 6

/**
 * Those of all registrations of one mailbox that its owner has made, also if they are removed and
 * made again; and as many of all that its password has allowed.
 */
export const mailboxTestsPerMinuteMax = 12

/** Counts of the test events of a mailbox that a node keeps, of which a mailbox has up to two. */
export const testedMailboxesMax = 10_000

/** Log items up to the cursor that the test event of a WebSub subscription shows. */
export const testTopicItemsMax = 20

/** How long after its creation a registration may not be in its mailbox yet. */
export const registeringMaxMs = 60_000

/** Wrong passwords from one address within the window, then 429 (protocol §1.1). */
export const wrongPasswordsMax = 10

/** Wrong account tokens from one address, and for one account from all addresses. */
export const wrongTokensMax = 30

/** Also wrong passwords from all addresses of one network (/24, /48). */
export const wrongAccountTokensMax = 100

/**
 * The passwords of one address that are being checked are as many as may be wrong; another one
 * waits, looks so often whether there is room, and is 429 in the end. It has two turns to wait for,
 * of its address and of its network, and so long for both.
 */
export const passwordTurnMs = 25

export const passwordWaitMs = 7_000

/**
 * An attempt whose end got lost counts no longer. It counts while it waits for its second turn and
 * is checked: content replies to a password sooner.
 */
export const passwordCheckMs = 15_000

export const wrongAttemptsWindowMs = 60_000
/**
 * Message passwords of notifications that a node checks at once: so many more than
 * {@link wrongPasswordsMax} may be wrong in a window.
 */
export const passwordChecksMax = 4

/** Characters of one answer of a session. */
export const answerCharsMax = 8192

/** UTF-16 units of a host and of a label of it; a name in DNS has 253 octets, a label 63. */
export const hostCharsMax = 512

export const hostLabelCharsMax = 128

/** UTF-16 units of combining marks that follow each other in a text that is compared. */
export const combiningRunMax = 30

/** Characters of an answer, without case and accents, that are compared with the right ones. */
export const foldedCharsMax = 4 * answerCharsMax

/** Receipts kept for one content resource. */
export const receiptsMax = 1000

/** Characters of the description of one receipt. */
export const receiptDescriptionCharsMax = 1000

/** Characters of its description that a sent notification shows in lists. */
export const aboutCharsMax = 200

/** Blobs of one content resource that wait for their removal. */
export const staleBlobsMax = 64

/** Notifications that keep a content; see {@link linksOverflowMs}. */
export const contentLinksMax = 100

/** How long anonymous content is kept at least after it had more links than it can note. */
export const linksOverflowMs = 365 * 24 * hourMs

/** A repeated deposit notes its link again after this time. */
export const linkRefreshMs = 60_000

/** Inlined content whose notification was not deposited is removed after this time. */
export const inlinedCheckMs = hourMs

/** Reads within this part of a retention are recorded once; checks of links are this far apart. */
export const retentionParts = 30

/** A lost check of links is repeated after this time. */
export const linkCheckRetryMs = 120_000

/** Log items that one check of links reads, and those of one read. */
export const linkCheckItems = 20_000

export const linkCheckPageItems = 50

/** The deposit of a notification has ended so long after its link was noted. */
export const linkDepositMaxMs = 10 * 60_000

/** A removal of blobs that was not confirmed is repeated after this time. */
export const blobRemovalRetryMs = 60_000

/** Mailboxes of one cabinet. */
export const cabinetMailboxesMax = 100

/** Tokens of one account that have not expired. */
export const accountTokensMax = 16

/** The use of a token is recorded once in this time, so that it costs almost no commits. */
export const tokenUseIntervalMs = 60 * 60_000

/** Browsers that are signed in to one account. */
export const browserSessionsMax = 16

/** A browser is signed out after this time without a request, and after this time in any case. */
export const browserSessionIdleMs = 12 * 60 * 60 * 1000

export const browserSessionLifetimeMs = 7 * 24 * 60 * 60 * 1000

/** The account stores the time of a browser's last request once in this time. */
export const browserSessionTouchMs = 10 * 60 * 1000

/** A failed removal of the records of expired tokens is repeated after this time. */
export const tokenRemovalRetryMs = 60_000

/** What a removed account owned: resources that one step deletes, and how many at a time. */
export const ownedPage = 64

export const ownedAtOnceMax = 8

/** A lost step is repeated after this time, and a pass that found something after the other. */
export const ownedRemovalRetryMs = 120_000

export const ownedPassMs = 30_000

/** No request that began before the removal of its account creates anything after this time. */
export const ownedSettledMs = 10 * 60_000

/** Blocks of depositors that one mailbox has, in its record. */
export const mailboxBlocksMax = 100

/** Characters of an account, network or host that is blocked, and of the reason. */
export const blockValueCharsMax = 255

export const blockReasonCharsMax = 300

/** Characters of an audit entry: an account or address, an action, a target, a detail. */
export const auditAccountCharsMax = 200

export const auditActionCharsMax = 64

export const auditTargetCharsMax = 500

export const auditDetailCharsMax = 300

/** Operations whose outcome is not in the audit log yet. */
export const auditOpenMax = 500

/** An operation without an outcome after this time has an unknown one. */
export const auditLapseMs = 10 * 60_000

/** Operations whose outcome one decision records as unknown. */
export const auditLapsedMax = 50

/** Entries of the audit log; beyond them the oldest are removed before their time. */
export const auditEntriesMax = 2_000_000

/**
 * Changes of one account that is no admin, of which the audit log has two entries each, within a
 * day (UTC). So one account fills the log's two million entries in 500 days at the earliest: it
 * pushes out no entry before its age of 365 days, which is the default.
 */
export const auditedChangesPerDayMax = 2_000

/** Sign-outs beyond these. */
export const auditedSignOutsPerDayMax = 100

/**
 * Revocations of tokens, which have a bound of their own and need the scope `admin`: whoever found
 * a token of a narrower scope may spend the others, and the owner can still revoke it.
 */
export const auditedRevocationsPerDayMax = 100

/** How often the audit log removes old entries, and when a lost removal is repeated. */
export const auditTrimIntervalMs = 24 * hourMs

export const auditRetryMs = 60_000

/** Requests to one origin that anonymous deposits of one client network may cause (protocol §7). */
export const anonymousPerMinuteMax = 10

export const anonymousPerDayMax = 100

/** Pairs of network and origin whose requests a node remembers. */
export const anonymousBudgetsMax = 10_000

/** Origins of these that one client network may have. */
export const anonymousOriginsMax = 1_000

/**
 * Budgets of a node that networks have for all origins beyond these: one for a network, or for some
 * networks together.
 */
export const anonymousSharedBudgetsMax = 10_000

/** A node logs dropped requests of anonymous deposits once in this time. */
export const droppedRequestsLogMs = hourMs

/** How long a node remembers whether a message takes receipts, and of how many messages. */
export const receiptAcceptanceFreshMs = 24 * hourMs

export const receiptAcceptancesMax = 10_000

/** How long after an anonymous deposit the mailbox makes requests for it. */
export const anonymousRequestsMs = 60 * 60_000

/** A background task whose attempt was lost is repeated after this time. */
export const backgroundTaskLeaseMs = 120_000

/** An attempt is repeated after this time if a store or actor was unavailable. */
export const unavailableRetryMs = 1_000

/** Bytes of a fetched copy: the default of a mailbox, and the maximum. */
export const cachedBytesDefault = 1024 * 1024

export const cachedBytesMax = 16 * 1024 * 1024

/** A task has an attempt at a time; one that has not ended after this time is given up. */
export const backgroundTaskAttemptMaxMs = 10 * 60_000

/** Bytes that all running fetches may hold, those into one mailbox, and those for one sender. */
export const fetchBytesInFlightMax = 128 * 1024 * 1024

export const fetchBytesPerMailboxMax = 64 * 1024 * 1024

export const fetchBytesPerSenderMax = 32 * 1024 * 1024

/** A fetch for whose bytes there was no room is repeated after this time. */
export const fetchMemoryRetryMs = 10_000

/** Memory for the body of a response grows by this much. */
export const bodyBlockBytes = 64 * 1024

/** Bytes of an answer's body that an {@link ExchangeRecord} of `outbound` keeps. */
export const answerSampleBytesMax = 4 * 1024

/** Headers in such a record, of the request and of the answer each; characters of all of them. */
export const recordedHeadersMax = 32

export const recordedHeaderCharsMax = 2 * 1024

/** Memory for samples: each request in flight holds one at most. */
export const answerSamplesBytesMax = 1024 * 1024

/** Attempts of one outgoing notification that run at the same time. */
export const attemptsAtOnceMax = 32

/** A lost attempt at a recipient is repeated after this time. */
export const attemptLeaseMs = 120_000

/** Longest read of a notification's document; its attempt is then deferred. */
export const documentReadMs = 10_000

/** A deferred attempt is repeated after this time at the earliest. */
export const deferredMinMs = 100

/** A deferral that ends within this time is kept in memory only. */
export const deferredInMemoryMs = 110_000

/** Recipients of one outgoing notification. */
export const recipientsMax = 1_000

/** With more recipients than this, each is a separate log item, and the record has none. */
export const recipientsInlineMax = 16

/** Estimated bytes in memory of a recipient, besides its URI, its location and its problem. */
export const bytesPerRecipient = 256

/** Estimated bytes in memory of an attempt in the log of a notification. */
export const bytesPerKeptAttempt = 64

/** Recipients in one reply of a notification: it must fit a message between nodes. */
export const describedRecipientsMax = 100

/**
 * Attempts of one outgoing notification whose exchange its log keeps, those of one recipient (more
 * than a run of the default schedule), and characters of all of them.
 */
export const relayAttemptsKeptMax = 256

export const recipientAttemptsKeptMax = 16

export const relayAttemptsKeptCharsMax = 256 * 1024

/** Retries with an Idempotency-Key that a notification remembers, in its record. */
export const keyedRetriesMax = 16

/**
 * Replays of one notification to recipients that its sender names, in an hour: each needs little
 * from the sender, and may send the notification to all recipients.
 */
export const replaysPerHourMax = 12

export const replaysWindowMs = hourMs

/** Recipients that a replay of a span names: each of its notifications is asked for them. */
export const replayedRecipientsMax = 16

/** How often a sender replaces one notification; it can withdraw it even then. */
export const followUpsMax = 16

/**
 * A hold by a pause ends by itself after as long as it has lasted, within these bounds; the next
 * attempt then asks again. What was released at the end of the pause has not waited for that.
 */
export const holdMinMs = 60_000

export const holdMaxMs = hourMs

/** A hold that ended longer ago was of an earlier pause. */
export const holdContinuesMs = 10 * 60_000

/** Origins to which one outgoing mailbox pauses its relays. */
export const pausedOriginsMax = 32

/**
 * How long a node remembers the pauses of an outgoing mailbox, and of how many. Another node may
 * begin an attempt so long after a pause.
 */
export const relayPausesFreshMs = 2_000
export const relayPausesKnownMax = 10_000

/** After a failed lookup of pauses, attempts of this account are deferred without another one. */
export const relayPausesRetryMs = 1_000

/** Notifications that one step of a release asks, and at a time. */
export const releasePage = 64

export const releasedAtOnceMax = 8

/** A lost step of a release is repeated after this time. */
export const releaseRetryMs = 120_000

/**
 * Passes of a release at most: another one follows where some notifications were unavailable. It
 * asks all again that were not sent, so there are few; a hold ends by itself.
 */
export const releasePassesMax = 3
export const releasePassMs = 30_000

/** Outdated items of recipients that the log may have beside one item for each recipient. */
export const outdatedItemsMin = 64

/** Numbers of log items that one decision cleans of outdated items of recipients. */
export const cleanedItemsMax = 256

/** Numbers of log items that the recipients of a notification span at most. */
export const recipientItemsMax = 5 * recipientsMax

/** Characters of the largest document that is cached for its attempts. */
export const cachedDocumentCharsMax = 4096

/** Characters of all cached documents of a node. */
export const cachedDocumentsCharsMax = 4 * 1024 * 1024

/** Characters of the recent outcomes of attempts that a node keeps: about 30,000 of them. */
export const knownOutcomesCharsMax = 4 * 1024 * 1024

/** Characters of documents that the running attempts of a node have read. */
export const documentCharsInFlightMax = 64 * 1024 * 1024

/** Characters of a Location, and of a problem, that a recipient's record keeps. */
export const locationCharsMax = 2048

export const problemCharsMax = 500

/** Status hints of the listing: the time to gather them, one write, and all that wait. */
export const statusHintsGatherMs = 50

export const statusHintsPerWriteMax = 500

export const statusHintsWaitingMax = 10_000

/** How long a hold waits for the hints that were added before it. */
export const statusHintsWrittenMs = 5_000

/** A listing's entry that was not removed is removed again after this time. */
export const entryRemovalRetryMs = 60_000

/** What a content counts beside its bytes: its records. */
export const contentOverheadBytes = 1024

/** What a node counts at once for small records of one network, and the networks it remembers. */
export const prepaidBlockBytes = 16 * contentOverheadBytes

export const prepaidNetworksMax = 10_000

/** Bodies that are being stored for one content. */
export const reservationsMax = 8

/** When the reservation of a body is compared with what its content has stored. */
export const reservationMs = 60 * 60_000

/** Changes of the usage of content that one write makes. */
export const ledgerGroupMax = 40

/** How often a write is tried while other nodes change the same totals, and the first pauses. */
export const ledgerAttemptsMax = 100

export const ledgerRetryMs = 2

/** Owners that are shown with the most bytes, those among which they are found, and of a read. */
export const largestShownMax = 20

export const largestScannedMax = 10_000

export const largestPage = 500

/** How often a node reads what the metrics and `/admin` show of the usage. */
export const usageShownMs = 15_000

/** How long the response of an idempotency key is kept. */
export const idempotencyRetentionMs = 24 * hourMs

/** An attempt that has not ended after this time counts as lost. */
export const idempotencyAttemptMaxMs = 60_000

const holds = (relation: boolean, name: string): void => {
  if (!relation) throw new Error(`actors/limits.ts: ${name} does not hold`)
}

holds(retentionSteps < retrievedRangesMax, "a retention's steps fit the ranges")

holds(
  deduplicationWindowItems <= notificationsMaxDefault,
  "a mailbox holds its deduplication window"
)

holds(waitingSavedItems < deduplicationWindowItems, "what is not stored is counted again")

holds(removalsPerEvent <= removalsMax, "an event records removals of one decision")

holds(cleanedItemsMax <= removalsMax, "outdated items are removed in one decision")

holds(
  relayAttemptsKeptMax + followUpsMax + 1 < removalsMax,
  "the removal of a notification begins with its documents and attempts"
)

holds(
  // Twice as many as recipients before a cleaning, and a retry and a follow-up of all.
  4 * recipientsMax + outdatedItemsMin + followUpsMax + 1 < recipientItemsMax,
  "the items of all recipients are recalled"
)

holds(
  linkRefreshMs < linkDepositMaxMs,
  "a link is noted again before its deposit is too late for it"
)

holds(linkDepositMaxMs < inlinedCheckMs, "inlined content is checked after its deposit has ended")

holds(documentReadMs < attemptLeaseMs, "reading a document ends before its attempt counts as lost")
holds(deferredInMemoryMs < attemptLeaseMs, "a deferral ends before its attempt counts as lost")

holds(
  // The body as it came, and decompressed.
  2 * cachedBytesMax <= fetchBytesPerSenderMax && cachedBytesMax % bodyBlockBytes === 0,
  "a fetch of the largest content has room"
)

holds(
  // Of the largest fetch, too.
  2 * fetchBytesPerSenderMax <= fetchBytesPerMailboxMax,
  "one sender leaves room for others in a mailbox"
)
holds(2 * fetchBytesPerMailboxMax <= fetchBytesInFlightMax, "one mailbox leaves room for others")

holds(statusHintsPerWriteMax <= statusHintsWaitingMax, "hints wait before they are written")

holds(browserSessionTouchMs < browserSessionIdleMs, "a browser in use stays signed in")
holds(browserSessionIdleMs < browserSessionLifetimeMs, "a session ends after the last one")
holds(wrongTokensMax < wrongAccountTokensMax, "one address alone does not throttle an account")

holds(pushReadItems <= pushItemsMax, "a push is read in parts")
holds(attemptsKeptMax <= removalsMax, "the end of a registration removes all its attempts")
holds(
  failureReportGiveUpMs < removedLocalDeliveryRetentionMs,
  "a mailbox recognizes the last deposit of a failure report"
)
holds(failureReportLeaseMs <= failureReportRetryMaxMs, "the first pause is no longer than the last")
holds(
  // Twice, so that the last attempt is not alone.
  2 * attemptCharsMax <= Math.min(attemptsKeptCharsMax, relayAttemptsKeptCharsMax) &&
    // Each byte of an answer, and each character of a header, is a character.
    answerSampleBytesMax + 2 * recordedHeaderCharsMax < attemptCharsMax,
  "an attempt with an ordinary answer is kept whole"
)
holds(
  webPushBytesMax + webPushOverheadBytes <= webPushRecordBytes,
  "a push to a browser has one record (RFC 8291 §4)"
)

holds(
  // Two entries of each, for as long as entries are kept by default.
  2 * 365 * (auditedChangesPerDayMax + auditedSignOutsPerDayMax + auditedRevocationsPerDayMax) <
    auditEntriesMax,
  "one account replaces no entry of the audit log before its age"
)

holds(auditLapsedMax <= auditOpenMax, "lapsed operations are among those under way")

holds(idempotencyAttemptMaxMs < idempotencyRetentionMs, "an attempt is shorter than a key's life")

/** The bounds that an operator, or a test, may set. */
export const deliveryLimits = {
  /** Name, TCP and TLS together (protocol §1.3). */
  connectMs: 5_000,
  /** One attempt with all its hops, without the wait for permits (protocol §1.3). */
  attemptMs: 30_000,
  /** How long the body of a response is read if it is not needed. */
  drainMs: 2_000,
  /** The next address is tried beside the earlier ones after this time (RFC 8305 §5). */
  nextAddressMs: 250,
  /** One request to a name server, and how often it is made. */
  nameTimeoutMs: 1_500,
  nameTries: 2,
  /** Requests in flight: to one origin (protocol §1.3), and of this node. */
  perOriginMax: 8,
  inFlightMax: 256,
  /** Of these: those that anonymous clients cause, and those that readers with a password cause. */
  anonymousInFlightMax: 32,
  mailboxesInFlightMax: 128,
  /** Requests that wait for a permit: of a cause to an origin, of this node, and for how long. */
  waitingPerOriginMax: 4_096,
  waitingMax: 16_384,
  anonymousWaitingMax: 2_048,
  mailboxesWaitingMax: 8_192,
  waitMs: 30_000,
  /** When a request to a full queue is retried; retries a second while the queue is served. */
  fullRetryMs: 1_000,
  fullRetriesPerSecond: 2_500,
  /** Failures in a row that open an origin's circuit; its first and its longest opening. */
  failuresMax: 10,
  openMs: 1_000,
  openMaxMs: 60_000,
  /** Retries of deferred requests in a second, of this node. */
  deferredPerSecond: 1_000,
  /** Origins that are remembered while they are idle. */
  originsMax: 10_000,
  /** With more open connections, none is kept for the next request. */
  connectionsKeptMax: 1_024
}

holds(
  2 * (deliveryLimits.waitMs + deliveryLimits.attemptMs) < backgroundTaskAttemptMaxMs,
  "the two requests of a receipt end before their attempt is given up"
)

export type DeliveryLimits = Readonly<typeof deliveryLimits>

/** Bytes of a response's body that are read if only its head counts (protocol §1.3). */
export const answerBytesMax = 64 * 1024

/** Bytes of a response's header block. */
export const answerHeadBytesMax = 16 * 1024

/** Redirects that are followed (protocol §1.3). */
export const redirectsMax = 3

/**
 * An origin is blamed for no answer if it had this share of an attempt's time. A server that
 * redirects in the last moment cannot open the circuit of another one.
 */
export const blamedShare = 0.5

/** Characters of a URI that is requested or passed on. */
export const uriCharsMax = 8_192

/** URIs whose destination is cached, and the longest URI that is cached. */
export const destinationsCachedMax = 2_048

export const cachedUriCharsMax = 512

/** Addresses of one name that are tried. */
export const addressesMax = 8

/** How long an idle connection is kept, and at most if the peer offers more. */
export const keepAliveMs = 4_000

export const keepAliveMaxMs = 30_000

/** The retries of deferred requests are jittered by up to this time. */
export const deferredJitterMs = 100

/** How often a system file is checked for changes; a larger file is not read. */
export const watchedFileCheckMs = 1_000

export const watchedFileBytesMax = 1024 * 1024

/** The limits, with some replaced. A relation that does not hold is a defect. */
export const makeDeliveryLimits = (replaced: Partial<DeliveryLimits> = {}): DeliveryLimits => {
  const limits = { ...deliveryLimits, ...replaced }
  const holds = (relation: boolean, what: string): void => {
    if (!relation) throw new RangeError(`delivery limits: ${what} does not hold`)
  }
  holds(limits.connectMs <= limits.attemptMs, "connecting fits an attempt")
  holds(
    // 256 requests in flight with 4 KiB each are 1 MiB.
    limits.inFlightMax * answerSampleBytesMax <= answerSamplesBytesMax,
    "the samples of all answers fit their memory"
  )
  // One cause alone may hold half of the permits.
  holds(2 * limits.perOriginMax <= limits.inFlightMax, "an origin's attempts fit one cause")
  holds(limits.waitingPerOriginMax <= limits.waitingMax, "an origin's queue fits the node's")
  holds(limits.openMs <= limits.openMaxMs, "a circuit's first opening is the shortest")
  for (const [name, value] of Object.entries(limits)) {
    holds(Number.isInteger(value) && value > 0, `${name} is a whole number above 0`)
  }
  return limits
}
