/**
 * Every bound of the behaviours. Counts, characters and times, with the unit last in the name.
 */

const hourMs = 60 * 60 * 1000

/** Notifications that one mailbox keeps at a time, unless the operator says otherwise. */
export const notificationsMaxDefault = 2_000_000
/** The last so many notifications of a mailbox in which a repeated document is recognised. */
export const repeatedAmongItems = 1000
/** Log items that one decision removes: a commit must fit one batch of every store. */
export const removalsMax = 500
/** Ranges in which a mailbox remembers what has been retrieved, and when. */
export const retrievedRangesMax = 256
/** A retention is split into so many steps; retrievals within one step are one range. */
export const retentionSteps = 100
/** Ranges in which a mailbox remembers what has been removed. */
export const goneRangesMax = 1000

/** Length of one answer of a session. */
export const answerCharsMax = 8192

/** Receipts kept for one content resource. */
export const receiptsMax = 1000
/** Blobs of one content resource that wait for their removal. */
export const staleBlobsMax = 64
/** A removal of blobs that was not confirmed is tried again after this time. */
export const blobRemovalRetryMs = 60_000

/** Tokens of one account. */
export const accountTokensMax = 16

/** How long an answer is kept for its idempotency key. */
export const idempotencyKeepMs = 24 * hourMs
/** An attempt that has neither ended nor been given up after this time is held to be lost. */
export const idempotencyAttemptMs = 60_000

const holds = (relation: boolean, name: string): void => {
  if (!relation) throw new Error(`actors/limits.ts: ${name} does not hold`)
}
holds(retentionSteps < retrievedRangesMax, "a retention's steps fit the ranges")
holds(repeatedAmongItems <= notificationsMaxDefault, "a mailbox holds what it compares with")
holds(idempotencyAttemptMs < idempotencyKeepMs, "an attempt is shorter than a key's life")
