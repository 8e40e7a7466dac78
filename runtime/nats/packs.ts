/**
 * Log items that are appended together, several in one message: atomic without being a batch. A
 * message at the key of item n with the header `Restante-Items: 5,-,7` holds the items n to n + 2,
 * of 5 and 7 bytes; the second of them was removed. They are parted by line feeds. Without that
 * header a message is one item.
 */
import type { Address } from "../address.ts"
import type { Commit, LogItem } from "../ports/storage.ts"
import type { NatsApi } from "./connection.ts"
import { actorKeys, type Place } from "./keys.ts"
import { PACK_BYTES, PACK_ITEMS_MAX } from "./limits.ts"
import { pieces } from "./listing.ts"
import { lastOfMany } from "./reader.ts"
import { type Entry, isItem } from "./record.ts"
import type { Stored } from "./wire.ts"

const ITEMS = "Restante-Items"
const GONE = "-"

/** What is written at the key of item `n`: it and those that follow, undefined where removed. */
export interface Pack {
  readonly n: number
  readonly values: ReadonlyArray<string | undefined>
}

/** The message of a pack; `headers` are whole lines. */
export const written = ({ values }: Pack): { data: string; headers: string } => {
  const [first] = values
  if (values.length === 1) return { data: first ?? "", headers: "" }
  const lengths = values.map((value) => value === undefined ? GONE : Buffer.byteLength(value))
  const data = values.filter((value) => value !== undefined).join("\n")
  return { data, headers: `${ITEMS}: ${lengths.join(",")}\r\n` }
}

/** Items in packs of numbers that follow each other, each of at most so many bytes. */
export const packsOf = (
  append: ReadonlyArray<LogItem>,
  bytesMax: number
): ReadonlyArray<Pack> => {
  const packs: Array<{ n: number; values: Array<string> }> = []
  let bytesLeft = 0
  for (const { n, value } of append) {
    // A UTF-16 unit takes at most three bytes of UTF-8; the line feed takes one.
    const bytes = 3 * value.length + 1
    const last = packs.at(-1)
    const fits = last !== undefined && n === last.n + last.values.length &&
      last.values.length < PACK_ITEMS_MAX && bytes <= bytesLeft
    if (fits) {
      last.values.push(value)
      bytesLeft -= bytes
    } else {
      packs.push({ n, values: [value] })
      bytesLeft = Math.min(PACK_BYTES, bytesMax) - bytes
    }
  }
  return packs
}

/** How many numbers a stored message stands for. */
export const countOf = (stored: Stored): number => stored.header(ITEMS)?.split(",").length ?? 1

/** The pack of a stored message at the key of item `n`. */
const packOf = (n: number, stored: Stored): Pack => {
  const lengths = stored.header(ITEMS)?.split(",")
  if (lengths === undefined) return { n, values: [stored.text()] }
  const bytes = Buffer.from(stored.bytes())
  let at = 0
  const values = lengths.map((length) => {
    if (length === GONE) return undefined
    const from = at
    at += Number(length) + 1
    return bytes.toString("utf8", from, at - 1)
  })
  return { n, values }
}

/** The items of a stored message at the key of item `n`, without those that were removed. */
export const itemsOf = (n: number, stored: Stored): ReadonlyArray<LogItem> =>
  packOf(n, stored).values.flatMap((value, at) => value === undefined ? [] : [{ n: n + at, value }])

/** The numbers at whose keys item `n` may be. */
export const numbersFor = (n: number): ReadonlyArray<number> =>
  Array.from(
    { length: Math.min(n, PACK_ITEMS_MAX) },
    (_, at) => n - Math.min(n, PACK_ITEMS_MAX) + 1 + at
  )

/** A pack that loses items. */
export interface Torn {
  readonly n: number
  /** What is left of it; undefined: nothing. */
  readonly rest: Pack | undefined
}

const tear = ({ n, values }: Pack, removed: ReadonlySet<number>): Torn => {
  const left = values.map((value, at) => removed.has(n + at) ? undefined : value)
  return { n, rest: left.some((value) => value !== undefined) ? { n, values: left } : undefined }
}

/** What becomes of the messages that hold the items a commit removes. */
export const tornOf = async (
  nats: NatsApi,
  place: Place,
  entry: Entry,
  { address, remove, state }: Pick<Commit, "address" | "remove" | "state">
): Promise<ReadonlyArray<Torn>> => {
  if (remove.length === 0 || state === null) return []
  const removed = new Set(remove)
  const torn: Array<Torn> = []
  for (const { n, stored } of await messagesOf(nats, place, entry, address, remove)) {
    const pack = packOf(n, stored)
    if (pack.values.some((value, at) => value !== undefined && removed.has(n + at))) {
      torn.push(tear(pack, removed))
    }
  }
  return torn
}

/** The messages at whose keys these items may be, of those that count. */
const messagesOf = async (
  nats: NatsApi,
  place: Place,
  entry: Entry,
  address: Address,
  numbers: ReadonlyArray<number>
): Promise<ReadonlyArray<{ readonly n: number; readonly stored: Stored }>> => {
  const { log } = actorKeys(place, address)
  const keys = [...new Set(numbers.flatMap(numbersFor))].map((n) => log + n)
  const found: Array<{ readonly n: number; readonly stored: Stored }> = []
  for (const piece of pieces(keys)) {
    for (const stored of await lastOfMany(nats, place.stream, piece, entry.lastSeq)) {
      const n = Number(stored.subject.slice(log.length))
      if (isItem(entry, n, stored)) found.push({ n, stored })
    }
  }
  return found
}
