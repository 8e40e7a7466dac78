/** How much content each owner has stored, and the quotas of it (protocol §7). */
export { contentListingTable, everyoneKey, networksTable, type OwnerUse, parseUsageEntry,
  reservationsTable, Usage, UsageLedger, usageTable, usageTotalsTable } from "./ledger.ts"
export { addToTotals, networkKey, ownerKey, type QuotaExceeded, type StoredUsage, type UsageEntry,
  type UsageLimits, type UsageTotal } from "./usage.ts"
