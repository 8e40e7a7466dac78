/** Every bound of customers and of loading them. */

/** Characters of one row of a file. */
export const rowCharsMax = 64 * 1024
/** Columns of a CSV file. */
export const columnsMax = 64
/** Rows with a fault that are told, of those that were passed over. */
export const problemsMax = 100
/** Rows that one step of a load writes, unless the store takes fewer. */
export const loadBatchRows = 2_000
/** Changes that a new row comes to: its record, and its key in the index. */
export const changesPerRow = 2
/** A load under way that was not touched for this long has lost its node, ms. */
export const loadIdleMs = 60_000
/** Loads that have lost their node are looked for this often, ms. */
export const loadWatchMs = 30_000
/** How long it is told what became of a load, ms. */
export const loadKeptMs = 7 * 24 * 60 * 60 * 1000
/** Loads that are looked at together. */
export const loadsPage = 100
