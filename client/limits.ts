/** Every limit of the client. */

/** Attempts of one request, the first included. */
export const attemptsMax = 5

/** Pauses between attempts: the first, doubled each time up to the longest. */
export const backoffMsFirst = 250

export const backoffMsMax = 10_000

/** A longer Retry-After is left to the caller. */
export const retryAfterMsMax = 60_000

/** Time for one attempt of a request with a small response. */
export const responseMs = 30_000

/** Largest document: a page of 1,000 notifications may have this size. */
export const documentBytesMax = 512 * 1024 * 1024

/** Largest problem document. */
export const problemBytesMax = 1024 * 1024

/** `Prefer: wait` of one long poll. */
export const longPollSeconds = 25

/** Pause after a change, so that fast changes are read together. */
export const changePauseMs = 150

/** Interval of polling where the service has no long poll. */
export const pollIntervalMs = 1000

/** Four heartbeats of the service: a live stream that is silent for longer is broken. */
export const silenceMs = 60_000

/** Longest event of a live stream. */
export const eventCharsMax = 4 * 1024 * 1024

/** Longest pause between two connections that a `retry` field may set. */
export const retryFieldMsMax = 60_000

/** Shortest pause between two connections of a watch, whatever the service or a proxy says. */
export const reconnectMsMin = 100

/** Entries of a page by default. */
export const pageEntries = 100

/** Entries of the largest page. */
export const pageEntriesMax = 1000

/** How often a change of pauses is tried while others change them too. */
export const pauseChangesMax = 5

/** Sessions of the list that are searched for one that is over. */
export const searchedSessionsMax = 50_000

/** Nesting of elements in a document. */
export const xmlDepthMax = 64

/** Bytes of one push. */
export const pushBytesMax = 64 * 1024 * 1024

/** Largest difference between the time of a push and now. */
export const toleranceMs = 5 * 60_000

/** Signatures of one push that are verified. */
export const signaturesMax = 16

/** Bytes of a signature of HMAC-SHA256. */
export const signatureBytes = 32

/** Signatures of one push that are compared with what its body may have been. */
export const findingSignaturesMax = 4

/** A larger body is not searched for what has changed it. */
export const bodyFindingBytesMax = 4 * 1024 * 1024
