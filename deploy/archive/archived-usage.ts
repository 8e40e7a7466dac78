/**
 * The ledger of content as it is archived. It is read after the contents of a service that runs,
 * so it may count content that the archive lacks. Nothing would end such an entry after a restore.
 * The total of an owner is the sum of its archived entries.
 */
import { addToTotals, contentListingTable, cursorTimeDigits, parseUsageEntry, type UsageEntry,
  usageTable, type UsageTotal, usageTotalsTable } from "../../actors/index.ts"
import type { RecordPart } from "../../runtime/index.ts"

/** The content that a key `<owner>/<cursor>` of the listing refers to. */
const contentOfListing = (key: string): string =>
  key.slice(key.lastIndexOf("/") + 1 + cursorTimeDigits + 1)

/** The entry of content that is not in the archive: a body that may be on its way is reserved. */
const entryWithoutContent = ({ body: _lost, ...entry }: UsageEntry): UsageEntry | undefined =>
  entry.reservations.length === 0 ? undefined : entry

export class ArchivedUsage {
  private readonly hasContent: (id: string) => boolean
  private readonly totals = new Map<string, UsageTotal>()

  /** `hasContent`: whether the archive has the actor of this content. */
  constructor(hasContent: (id: string) => boolean) {
    this.hasContent = hasContent
  }

  /** The record as it is archived; undefined for one that the archive does not have. */
  recordOf(part: RecordPart): RecordPart | undefined {
    const { key, table, value } = part
    switch (table) {
      case contentListingTable:
        return this.hasContent(contentOfListing(key)) ? part : undefined
      case usageTotalsTable:
        return undefined // see totalRecords
      case usageTable:
        return this.entryRecordOf(part, parseUsageEntry(value))
      default:
        return part
    }
  }

  /** The totals of all entries so far. */
  *totalRecords(): Generator<RecordPart> {
    for (const [key, total] of this.totals) {
      yield { _tag: "Record", table: usageTotalsTable, key, value: JSON.stringify(total) }
    }
  }

  private entryRecordOf(part: RecordPart, entry: UsageEntry): RecordPart | undefined {
    const archived = this.hasContent(part.key) ? entry : entryWithoutContent(entry)
    if (archived === undefined) return undefined
    addToTotals(this.totals, archived)
    return archived === entry ? part : { ...part, value: JSON.stringify(archived) }
  }
}
