/** Every bound of the client, with its unit last in the name. */
/** Times that one request is made, the first counted. */
export const attemptsMax = 5

/** Pauses between attempts: the first, doubled each time up to the longest. */
export const backoffMsFirst = 250

export const backoffMsMax = 10_000

/** A Retry-After that is longer than this is left to the caller. */
export const retryAfterMsMax = 60_000

/** Time for one attempt of a request with a small answer. */
export const answerMs = 30_000

/** A document that is read: a page of 1,000 notifications may be of this size. */
export const documentBytesMax = 512 * 1024 * 1024

/** A problem document. */
export const problemBytesMax = 1024 * 1024

/** Seconds that one long poll asks for. */
export const longPollSeconds = 25

/** Between two looks at something that changes quickly. */
export const settleMs = 150

/** Between two looks at what cannot be waited for. */
export const lookMs = 1000

/** Four heartbeats of the service: a live stream that is silent for so long is dead. */
export const silenceMs = 60_000

/** Text of one event of a live stream. */
export const eventCharsMax = 4 * 1024 * 1024

/** Longest pause that the service may ask for between two connections of a stream. */
export const retryFieldMsMax = 60_000

/** Notifications of a page, when not asked for. */
export const pageEntries = 100

/** Pages of the list of sessions in which an ended one is looked for. */
export const sessionPagesMax = 50

/** Nesting of elements in a document. */
export const xmlDepthMax = 64

/** Bytes of one push. */
export const pushBytesMax = 64 * 1024 * 1024

/** How far the time of a push may be from now. */
export const toleranceMs = 5 * 60_000

/** Signatures of one push that are looked at. */
export const signaturesMax = 16
