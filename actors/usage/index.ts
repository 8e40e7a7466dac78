/** How much content each owner has stored, and the quotas of it (protocol §7). */
export { contentListingTable, everyoneKey, networksTable, type OwnerUse, reservationsTable, Usage,
  UsageLedger } from "./ledger.ts"
export { networkKey, ownerKey, type QuotaExceeded, type StoredUsage, type UsageLimits,
  type UsageTotal } from "./usage.ts"
