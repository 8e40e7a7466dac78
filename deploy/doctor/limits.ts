/** Every bound of `restante doctor`. Units stand last in the names. */

/** Open files that a busy node wants: a connection is one. */
export const FILES_WANTED = 65_536
/** With fewer it refuses connections soon. */
export const FILES_MIN = 1_024
/** Room on the disk of the store. */
export const ROOM_WANTED_BYTES = 5 * 1024 ** 3
export const ROOM_MIN_BYTES = 256 * 1024 ** 2
/** Memory that a node may use. */
export const MEMORY_WANTED_BYTES = 512 * 1024 ** 2
/** How far clocks may be apart: leases of nodes and signatures of pushes stand on them. */
export const CLOCK_WARN_MS = 1_000
export const CLOCK_FAIL_MS = 60_000
/** A clock before this is not set: ms since the epoch, 2026-01-01. */
export const CLOCK_EARLIEST_MS = Date.UTC(2026, 0, 1)
/** Round trip to NATS; a commit takes at least one. */
export const NATS_ROUND_TRIP_WARN_MS = 20
/** `max_payload` of the servers: the largest document, as it is stored. */
export const NATS_PAYLOAD_WANTED_BYTES = 1024 ** 2
/** How long an answer may take. */
export const ASK_MS = 3_000
/** Characters of a token that nobody guesses. */
export const TOKEN_CHARACTERS_MIN = 22
