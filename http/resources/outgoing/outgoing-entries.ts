/**
 * The index of an outgoing mailbox, newest first: an entry is written before its notification is
 * queued, so that none is ever missing. Its value is a hint of how the notification stands.
 */
import { Effect } from "effect"
import type { HandlerFailure, Service } from "../../pipeline/index.ts"

/** `<account>/<inverted ms, 13 digits>.<id>`: ascending keys are newest first. */
const outgoingTable = "outgoing"

/** `<account>/<id>` of a keyed request that is under way: its entry in the other table. */
const keysTable = "outgoing-keys"

const newestMs = 9_999_999_999_999

const keyDigits = 13

const cursorPattern = /^\d{13}\.[A-Za-z0-9_=-]{1,200}$/

/** One entry; `cursor` is its key without the account. */
export interface OutgoingEntry {
  readonly cursor: string
  readonly id: string
  /** When the sender's request came, ms since the epoch. */
  readonly atMs: number
  /**
   * `waiting` may be said of one that has ended, and `failed` of one that was tried again; `sent`
   * is final.
   */
  readonly hint: string
}

export const isCursor = (text: string): boolean => cursorPattern.test(text)

const cursorOf = (atMs: number, id: string): string =>
  `${String(newestMs - atMs).padStart(keyDigits, "0")}.${id}`

/**
 * Enters a notification and gives the entry's key. A request that may be repeated notes its entry,
 * so that its repetition after a crash finds that entry instead of making another.
 */
export const enter = Effect.fnUntraced(function*(
  { nowMs, records }: Service,
  account: string,
  id: string,
  repeatable: boolean
): Effect.fn.Return<string, HandlerFailure> {
  const noted = `${account}/${id}`
  const known = repeatable ? yield* records.get(keysTable, noted) : undefined
  const key = known ?? `${account}/${cursorOf(nowMs(), id)}`
  const entry = { table: outgoingTable, key, value: "waiting" }
  yield* records.write(
    repeatable ? [entry, { table: keysTable, key: noted, value: key }] : [entry]
  )
  return key
})

/** The notification is queued, so that its repetition will find it; nobody depends on this. */
export const entered = ({ records }: Service, account: string, id: string): Effect.Effect<void> =>
  Effect.ignore(
    records.write([{ table: keysTable, key: `${account}/${id}`, value: null, fades: true }])
  )

/** Takes entries out, or says of them that they wait. */
export const mark = (
  { records }: Service,
  account: string,
  cursors: ReadonlyArray<string>,
  value: "waiting" | null
): Effect.Effect<void, HandlerFailure> =>
  cursors.length === 0 ? Effect.void : records.write(
    cursors.map((cursor) => ({
      table: outgoingTable,
      key: `${account}/${cursor}`,
      value,
      fades: true
    }))
  )

/** The entries after a cursor. */
export const entriesAfter = (
  { records }: Service,
  account: string,
  after: string | undefined,
  limit: number
): Effect.Effect<ReadonlyArray<OutgoingEntry>, HandlerFailure> => {
  const prefix = `${account}/`
  const range = { prefix, limit, ...after === undefined ? {} : { after: prefix + after } }
  return Effect.map(records.range(outgoingTable, range), (rows) =>
    rows.map(({ key, value }) => {
      const cursor = key.slice(prefix.length)
      return {
        cursor,
        id: cursor.slice(keyDigits + 1),
        atMs: newestMs - Number(cursor.slice(0, keyDigits)),
        hint: value
      }
    }))
}
