/** What customers, quotes and queries share: rows as resources and listings. */
export { addressOf, collectionPath, endingChanges, endOf, goneQueries, isOver, isQueryId, mayMake,
  ownersTable, parseStored, queriesTable, queryPath, removalChanges, storedChanges,
  type StoredQuery, storedRemoval, watchQueries } from "./query-store.ts"
export { readKept, type RecordResource, removeKept, type Replaced, replaceKept,
  requireRole } from "./record-resource.ts"
export { listRows, type RowListing } from "./row-listing.ts"
export { rowQuery } from "./row-operations.ts"
export { rowTable } from "./row-table.ts"
