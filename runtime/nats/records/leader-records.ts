/** Reads records from the servers while the view is behind. */
import { StorageUnavailable } from "../../actor/index.ts"
import { keysPerReadMax, listedKeysMax } from "../../limits.ts"
import { byBytes, type RecordEntry, type RecordRange } from "../../ports/index.ts"
import type { NatsApi } from "../connection/index.ts"
import { isMarker, listSubjects, pagesOf, readLast, readLastOfMany } from "../stream/index.ts"
import { recordOf, recordsFilter, recordsKv, recordSubject } from "./record-keys.ts"

/** The range has more keys than are listed. */
export class TooManyKeys extends StorageUnavailable {}

/** The first part of the keys of a range, `<part>/…`; undefined: any. */
const partOf = ({ prefix = "" }: RecordRange): string | undefined => {
  const slash = prefix.indexOf("/")
  return slash < 0 ? undefined : prefix.slice(0, slash)
}

const isWithin = (key: string, { after, prefix = "", reverse }: RecordRange): boolean => {
  if (!key.startsWith(prefix)) return false
  if (after === undefined) return true
  const order = byBytes(key, after)
  return reverse === true ? order < 0 : order > 0
}

/** Its reads show everything up to `lastSeq`. */
export class LeaderRecords {
  private readonly nats: NatsApi
  private readonly lastSeq: number

  constructor(nats: NatsApi, lastSeq: number) {
    this.nats = nats
    this.lastSeq = lastSeq
  }

  async get(table: string, key: string): Promise<string | undefined> {
    const stored = await readLast(this.nats, recordsKv.stream, recordSubject(table, key))
    return stored === undefined || isMarker(stored) ? undefined : stored.text()
  }

  async getMany(
    table: string,
    keys: ReadonlyArray<string>
  ): Promise<ReadonlyArray<string | undefined>> {
    const values = new Map<string, string>()
    const subjects = [...new Set(keys)].map((key) => recordSubject(table, key))
    for (const some of pagesOf(subjects)) {
      const stored = await readLastOfMany(this.nats, recordsKv.stream, some, this.lastSeq)
      for (const message of stored) {
        if (!isMarker(message)) values.set(recordOf(message.subject).key, message.text())
      }
    }
    return keys.map((key) => values.get(key))
  }

  async range(table: string, range: RecordRange): Promise<ReadonlyArray<RecordEntry>> {
    const keys = await this.keysIn(table, range)
    const entries: Array<RecordEntry> = []
    // A listed key may be that of a marker.
    for (let at = 0; at < keys.length && entries.length < range.limit; at += keysPerReadMax) {
      const some = keys.slice(at, at + keysPerReadMax)
      for (const [index, value] of (await this.getMany(table, some)).entries()) {
        const key = some[index]
        if (key !== undefined && value !== undefined) entries.push({ key, value })
      }
    }
    return entries.slice(0, Math.max(range.limit, 0))
  }

  async keys(
    table: string,
    ranges: ReadonlyArray<RecordRange>
  ): Promise<ReadonlyArray<ReadonlyArray<string>>> {
    const found: Array<ReadonlyArray<string>> = []
    for (const range of ranges) {
      found.push((await this.range(table, range)).map(({ key }) => key))
    }
    return found
  }

  /** All keys of a range, in its direction. */
  private async keysIn(table: string, range: RecordRange): Promise<ReadonlyArray<string>> {
    const keys: Array<string> = []
    const filter = recordsFilter(table, partOf(range))
    let listed = 0
    for await (const { subjects } of listSubjects(this.nats, recordsKv.stream, filter)) {
      listed += subjects.length
      if (listed > listedKeysMax) {
        const detail =
          `the view of ${table} is behind, and the table has too many keys to list; retry later`
        throw new TooManyKeys({ detail })
      }
      for (const subject of subjects) {
        const { key } = recordOf(subject)
        if (isWithin(key, range)) keys.push(key)
      }
    }
    keys.sort(byBytes)
    return range.reverse === true ? keys.toReversed() : keys
  }
}
