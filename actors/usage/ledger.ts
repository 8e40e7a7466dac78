/**
 * The records of what is stored: one entry for each content, and the totals of owners and networks.
 * Changes that wait for each other are written together, as a group, by compare-and-set: nodes
 * count for all nodes, and a change counts once however often it is repeated, except for `Spend`,
 * which has nothing to recognize its repetition by.
 *
 * The tables, and their keys:
 *
 * - `content-usage`: the content's id
 * - `content-listing`: `<owner>/<cursor>` and `all/<cursor>`, newest first
 * - `content-reservations`: `<ms>/<id>`, by the time when a reservation is due
 * - `usage-totals`: `anonymous`, or `account=<name>`
 * - `usage-networks`: `<day>/<network>`
 */
import { Context, Effect, Semaphore } from "effect"
import { logFailure, type RecordChange, type RecordsApi, type StorageFailure,
  StorageUnavailable } from "../../runtime/index.ts"
import { largestPage, largestScannedMax, largestShownMax, ledgerAttemptsMax, ledgerGroupMax,
  ledgerRetryMs, usageShownMs } from "../limits.ts"
import { cursorOf, timeInKey } from "../record-keys.ts"
import { PrepaidBlocks } from "./prepaid.ts"
import { applyChange, networkKey, ownerKey, type Reservation, type UsageChange, type UsageDraft,
  type UsageEntry, type UsageLimits, type UsageReply, type UsageTotal } from "./usage.ts"

export const usageTable = "content-usage"

export const contentListingTable = "content-listing"

export const reservationsTable = "content-reservations"

export const usageTotalsTable = "usage-totals"

export const networksTable = "usage-networks"

/** The listing of everybody's content. */
export const everyoneKey = "all"

interface Waiting {
  readonly change: UsageChange
  reply: UsageReply | undefined
}

/** What an account has stored, or a network has published in a day. */
export interface OwnerUse {
  readonly name: string
  readonly bytes: number
}

/** The values that a group has read, by table and key. */
interface ReadValues {
  readonly entries: ReadonlyMap<string, string | undefined>
  readonly totals: ReadonlyMap<string, string | undefined>
  readonly networks: ReadonlyMap<string, string | undefined>
}

const reservationKey = (contentId: string, { dueMs }: Reservation): string =>
  `${timeInKey(dueMs)}/${contentId}`

// Only the ledger writes these records.
export const parseUsageEntry = (value: string): UsageEntry => JSON.parse(value) as UsageEntry

const entryOf = (value: string | undefined): UsageEntry | undefined =>
  value === undefined ? undefined : parseUsageEntry(value)

const totalOf = (value: string | undefined): UsageTotal =>
  value === undefined ? { bytes: 0, contents: 0 } : JSON.parse(value) as UsageTotal

/** The keys that a content's listings have while it has an entry. */
const listingKeys = (id: string, entry: UsageEntry | undefined): ReadonlyArray<string> => {
  if (entry === undefined) return []
  const cursor = cursorOf(entry.publishedAtMs, id)
  return [`${ownerKey(entry.owner)}/${cursor}`, `${everyoneKey}/${cursor}`]
}

/** The changes of a set of keys whose records have no value. */
const keyChanges = (
  table: string,
  before: ReadonlyArray<string>,
  after: ReadonlyArray<string>
): ReadonlyArray<RecordChange> => [
  ...before.filter((key) => !after.includes(key)).map((key) => ({
    table,
    key,
    value: null,
    markerExpires: true
  })),
  ...after.filter((key) => !before.includes(key)).map((key) => ({ table, key, value: "" }))
]

/** The changes of a content's records. */
const entryChanges = (
  id: string,
  before: UsageEntry | undefined,
  after: UsageEntry | undefined
): ReadonlyArray<RecordChange> => {
  const due = (
    entry: UsageEntry | undefined
  ) => [...new Set(entry?.reservations.map((one) => reservationKey(id, one)))]
  return [
    after === undefined
      ? { table: usageTable, key: id, value: null, markerExpires: true }
      : { table: usageTable, key: id, value: JSON.stringify(after) },
    ...keyChanges(contentListingTable, listingKeys(id, before), listingKeys(id, after)),
    ...keyChanges(reservationsTable, due(before), due(after))
  ]
}

/** The totals that changed, and what they were when they were read. */
const changedValues = <A>(
  table: string,
  read: ReadonlyMap<string, string | undefined>,
  values: ReadonlyMap<string, A>,
  encode: (value: A) => string
) =>
  [...values].flatMap(([key, value]) => {
    const before = read.get(key)
    const text = encode(value)
    return text === before
      ? []
      : [{ expected: { table, key, value: before ?? null }, change: { table, key, value: text } }]
  })

export class UsageLedger {
  readonly limits: UsageLimits
  private readonly records: RecordsApi
  private readonly oneGroup = Semaphore.makeUnsafe(1)
  private waiting: Array<Waiting> = []
  private lastAnonymous: UsageTotal | undefined
  private lastLargest:
    | { readonly accounts: ReadonlyArray<OwnerUse>; readonly atMs: number }
    | undefined

  constructor(records: RecordsApi, limits: UsageLimits) {
    this.records = records
    this.limits = limits
  }

  /**
   * Makes a change. After a failure it may be stored nevertheless; then its repetition changes
   * nothing (a `Spend` counts again), and a reservation ends when it is due.
   */
  readonly submit = (change: UsageChange): Effect.Effect<UsageReply, StorageFailure> =>
    Effect.suspend(() => {
      const own: Waiting = { change, reply: undefined }
      this.waiting.push(own)
      return this.oneGroup.withPermit(Effect.suspend(() => this.write(own)))
    })

  /** What small records of clients without an account count, in blocks. */
  readonly prepaid = new PrepaidBlocks(this.submit)

  /** What all contents of an account count, or those of anonymous clients. */
  readonly total = (owner: string | undefined): Effect.Effect<UsageTotal, StorageFailure> =>
    Effect.map(this.records.get(usageTotalsTable, ownerKey(owner)), totalOf)

  /** The total of anonymous clients as it was last read; undefined before the first time. */
  get anonymousTotal(): UsageTotal | undefined {
    return this.lastAnonymous
  }

  /** Reads the total of anonymous clients at intervals, for as long as the service runs. */
  readonly watchAnonymous: Effect.Effect<never> = Effect.suspend(() =>
    Effect.forever(Effect.andThen(this.readAnonymous, Effect.sleep(usageShownMs)))
  )

  /** After a failure the last reading stays. */
  readonly readAnonymous: Effect.Effect<void> = Effect.suspend(() =>
    logFailure(
      Effect.map(this.total(undefined), (total) => {
        this.lastAnonymous = total
      }),
      "what clients without an account have stored was not read; the node retries"
    )
  )

  /** The entry of a content; undefined for one that is not counted. */
  readonly entry = (contentId: string): Effect.Effect<UsageEntry | undefined, StorageFailure> =>
    Effect.map(this.records.get(usageTable, contentId), entryOf)

  /** The networks whose clients without an account have published most on the day of this time. */
  readonly largestNetworks = (
    nowMs: number
  ): Effect.Effect<ReadonlyArray<OwnerUse>, StorageFailure> =>
    largest(this.records, networksTable, networkKey("", nowMs), Number)

  /** The accounts that have stored most. */
  readonly largestAccounts: Effect.Effect<ReadonlyArray<OwnerUse>, StorageFailure> = Effect
    .suspend(() =>
      largest(this.records, usageTotalsTable, ownerKey(""), (value) => totalOf(value).bytes)
    )

  /** The same, up to {@link usageShownMs} old, for a page that asks again every few seconds. */
  readonly recentLargestAccounts = (
    nowMs: number
  ): Effect.Effect<ReadonlyArray<OwnerUse>, StorageFailure> =>
    Effect.suspend(() => {
      const last = this.lastLargest
      return last !== undefined && nowMs - last.atMs < usageShownMs
        ? Effect.succeed(last.accounts)
        : Effect.tap(this.largestAccounts, (accounts) =>
          Effect.sync(() => {
            this.lastLargest = { accounts, atMs: nowMs }
          }))
    })

  /** Writes the change with others that wait; an earlier group may have written it. */
  private write(own: Waiting): Effect.Effect<UsageReply, StorageFailure> {
    if (own.reply !== undefined) return Effect.succeed(own.reply)
    const others = this.waiting.filter((one) => one !== own)
    const group = [own, ...others.slice(0, ledgerGroupMax - 1)]
    this.waiting = others.slice(ledgerGroupMax - 1)
    // If this fails, the others of the group write their changes when it is their turn.
    return Effect.andThen(this.writeGroup(group), Effect.sync(() => this.replyOf(own)))
  }

  private replyOf({ reply }: Waiting): UsageReply {
    if (reply === undefined) throw new Error("a group was written without a reply to its change")
    return reply
  }

  /** Writes a group as one, and again while other nodes change the same records. */
  private writeGroup(group: ReadonlyArray<Waiting>): Effect.Effect<void, StorageFailure> {
    const { limits, records } = this
    const attempt = Effect.fnUntraced(function*() {
      const { draft, read } = yield* readDraft(records, group.map(({ change }) => change))
      const replies = group.map(({ change }) => applyChange(draft, limits, change))
      const { changes, expected } = changesOf(read, draft)
      if (changes.length > 0 && !(yield* records.writeIf(expected, changes))) return false
      group.forEach((one, at) => {
        one.reply = replies[at]
      })
      return true
    })
    return Effect.uninterruptible(Effect.gen(function*() {
      for (let tries = 1; tries <= ledgerAttemptsMax; tries++) {
        if (yield* attempt()) return
        yield* Effect.sleep(ledgerRetryMs * Math.min(tries, 10))
      }
      return yield* new StorageUnavailable({ detail: "the usage of content changes all the time" })
    }))
  }
}

/** The largest of the totals with this prefix, among a bounded number of them. */
const largest = Effect.fnUntraced(function*(
  records: RecordsApi,
  table: string,
  prefix: string,
  bytesOf: (value: string) => number
): Effect.fn.Return<ReadonlyArray<OwnerUse>, StorageFailure> {
  let found: ReadonlyArray<OwnerUse> = []
  let after: string | undefined
  for (let read = 0; read < largestScannedMax; read += largestPage) {
    const range = { prefix, limit: largestPage, ...after === undefined ? {} : { after } }
    const rows = yield* records.range(table, range)
    const uses = rows.map(({ key, value }) => ({
      name: key.slice(prefix.length),
      bytes: bytesOf(value)
    }))
    found = [...found, ...uses.filter(({ bytes }) => bytes > 0)]
      .toSorted((one, other) => other.bytes - one.bytes)
      .slice(0, largestShownMax)
    after = rows.at(-1)?.key
    if (rows.length < largestPage) break
  }
  return found
})

/** Reads the records that these changes concern. */
const readDraft = Effect.fnUntraced(function*(
  records: RecordsApi,
  changes: ReadonlyArray<UsageChange>
): Effect.fn.Return<{ draft: UsageDraft; read: ReadValues }, StorageFailure> {
  const readAll = (table: string, keys: ReadonlyArray<string>) =>
    Effect.map(
      keys.length === 0 ? Effect.succeed([]) : records.getMany(table, keys),
      (values) => new Map(keys.map((key, at) => [key, values[at]]))
    )
  const unique = (keys: ReadonlyArray<string>) => [...new Set(keys)]
  const contentIds = changes.flatMap((one) => one._tag === "Spend" ? [] : [one.contentId])
  const entries = yield* readAll(usageTable, unique(contentIds))
  const decoded = new Map([...entries].map(([id, value]) => [id, entryOf(value)]))
  const known = [...decoded.values()].flatMap((entry) => entry === undefined ? [] : [entry])
  const reserving = changes.flatMap((change) => change._tag === "Reserve" ? [change] : [])
  const publications = reserving.flatMap(({ publication }) => publication ?? [])
  const totals = yield* readAll(
    usageTotalsTable,
    unique([...known, ...publications].map(({ owner }) => ownerKey(owner)))
  )
  const reservations = [
    ...known.flatMap((entry) => entry.reservations),
    ...reserving.map(({ reservation }) => reservation)
  ]
  const spending = changes.flatMap((change) => change._tag === "Spend" ? [change] : [])
  const networks = yield* readAll(
    networksTable,
    unique([...reservations, ...spending].flatMap(({ network }) => network ?? []))
  )
  return {
    read: { entries, totals, networks },
    draft: {
      entries: decoded,
      totals: new Map([...totals].map(([key, value]) => [key, totalOf(value)])),
      networks: new Map([...networks].map(([key, value]) => [key, Number(value ?? 0)]))
    }
  }
})

/** The write that makes the records those of the draft, if they are still as they were read. */
const changesOf = (read: ReadValues, draft: UsageDraft) => {
  const entries = [...draft.entries].filter(([id, entry]) =>
    (entry === undefined ? undefined : JSON.stringify(entry)) !== read.entries.get(id)
  )
  const sums = [
    ...changedValues(usageTotalsTable, read.totals, draft.totals, JSON.stringify),
    ...changedValues(networksTable, read.networks, draft.networks, String)
  ]
  return {
    expected: [
      ...entries.map(([key]) => ({
        table: usageTable,
        key,
        value: read.entries.get(key) ?? null
      })),
      ...sums.map(({ expected }) => expected)
    ],
    changes: [
      ...entries.flatMap(([id, entry]) => entryChanges(id, entryOf(read.entries.get(id)), entry)),
      ...sums.map(({ change }) => change)
    ]
  }
}

/** The ledger of this node, which its actors and its HTTP side share. */
export class Usage extends Context.Service<Usage, UsageLedger>()("restante/actors/Usage") {}
