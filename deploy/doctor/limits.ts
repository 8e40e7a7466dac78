/** Every bound of `restante doctor`. Units stand last in the names. */

/** Open files that a busy node wants: a connection is one. */
export const filesWanted = 65_536
/** With fewer it refuses connections soon. */
export const filesMin = 1_024
/** Room on the disk of the store. */
export const roomWantedBytes = 5 * 1024 ** 3
export const roomMinBytes = 256 * 1024 ** 2
/** Memory that a node may use. */
export const memoryWantedBytes = 512 * 1024 ** 2
/** How far clocks may be apart: leases of nodes and signatures of pushes stand on them. */
export const clockWarnMs = 1_000
export const clockFailMs = 60_000
/** A clock before this is not set: ms since the epoch, 2026-01-01. */
export const clockEarliestMs = Date.UTC(2026, 0, 1)
/** Round trip to NATS; a commit takes at least one. */
export const natsRoundTripWarnMs = 20
/** `max_payload` of the servers: the largest document, as it is stored. */
export const natsPayloadWantedBytes = 1024 ** 2
/** How long an answer may take. */
export const askMs = 3_000
/** Characters of a token that nobody guesses. */
export const tokenCharactersMin = 22
