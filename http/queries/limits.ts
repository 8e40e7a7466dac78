/** Every bound of queries and of the tables that they read. */

/** Conditions of one query, and how deep they may stand in each other. */
export const conditionNodesMax = 100
export const conditionDepthMax = 16
/** Length of a value that is compared. */
export const valueCharsMax = 200
/** Fields that one answer may be asked for. */
export const returnFieldsMax = 32
/** Rows of a whole query (`limit`). */
export const queryLimitMax = 1_000_000_000
/** Length of a cursor. */
export const cursorCharsMax = 4_096

/**
 * Rows that one answer looks at, shown or not, where they come in the order asked for: then the
 * page ends early, with a link to go on.
 */
export const scannedRowsMax = 50_000
/** Rows that must be looked at before the first is known: more of them is refused. */
export const sortedRowsMax = 100_000
/** Rows that are read in one step, after which others have their turn. */
export const chunkRows = 500
/**
 * Rows in order of their ids that are looked at before the index is asked: where most rows match,
 * the page is full by then.
 */
export const probeRows = 200
/** As many times that are looked at where that seems to be enough. */
export const probeFactorMax = 6
/** The fewest keys that are read of each value of an index at a time. */
export const mergeKeysMin = 4
/** As many times its even share of a page is read ahead of each. */
export const mergeKeysFactor = 1.5
/** Rows that are read beyond those that are expected to do for a page. */
export const spareRows = 8
/** Rows that are looked at before others have their turn. */
export const turnRows = 1_000

/** Rows, and characters, of one block of rows that are held in memory. */
export const blockRows = 128
export const blockCharsMax = 32 * 1024
/** What a block takes beside its text and numbers, about. */
export const blockOverheadBytes = 400
/** Bytes of the rows of one table that are held: some 1,300,000 of 60 characters. */
export const heldBytesMax = 96 * 1024 * 1024
/** Rows that are read at once to be held. */
export const fillRows = 400
/** As many times as that took it rests then. */
export const fillRest = 2
/** How long it waits while more changes than it could read, ms. */
export const fillPauseMs = 500
/** Blocks in which something has changed that one answer reads again. */
export const heldLoadsMax = 4

/** Attempts of a change that others come before, each upon the row as it is then. */
export const attemptsMax = 20

/** How long a query that was made without an account is kept, ms. */
export const anonymousQueryKeptMs = 30 * 24 * 60 * 60 * 1000
/** How many of those one address may have at a time. */
export const anonymousQueriesMax = 1_000
/** How often those that are over are removed, ms, and how many in one step. */
export const endedQueriesSweepMs = 10 * 60 * 1000
export const endedQueriesPage = 200
