/** Shared by customers, quotes and queries: records as resources, rows and their listings. */
export { chargeQuery, collectionPath, createQuery, creationChanges, expiryMs, isExpired,
  networkHash, parseQuery, queryPath, removalChanges, type StoredQuery,
  sweepQueries } from "./query-store.ts"
export { readRecord, type RecordResource, recordVersion, removeRecord,
  replaceRecord } from "./record-resource.ts"
export { requireRole, rowAnswer, rowOperations, type RowResource } from "./row-handlers.ts"
export { listRows, readRowQuery, type RowListing, rowQuery } from "./row-listing.ts"
export { rowTable } from "./row-table.ts"
