/**
 * Log items that are appended together, several in one message: atomic without being a batch. A
 * message at the key of item n with the header `Restante-Items: 5,-,7` holds the items n to n + 2,
 * of 5 and 7 bytes; the second of them was removed. They are parted by line feeds. Without that
 * header a message is one item.
 */
import type { LogItem } from "../ports/storage.ts"
import { packBytes, packItemsMax } from "./limits.ts"
import { ITEMS } from "./record.ts"
import type { StoredMessage } from "./wire.ts"

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
      last.values.length < packItemsMax && bytes <= bytesLeft
    if (fits) {
      last.values.push(value)
      bytesLeft -= bytes
    } else {
      packs.push({ n, values: [value] })
      bytesLeft = Math.min(packBytes, bytesMax) - bytes
    }
  }
  return packs
}

/** The pack of a stored message at the key of item `n`. */
export const packOf = (n: number, stored: StoredMessage): Pack => {
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
export const itemsOf = (n: number, stored: StoredMessage): ReadonlyArray<LogItem> =>
  packOf(n, stored).values.flatMap((value, at) => value === undefined ? [] : [{ n: n + at, value }])

/** The numbers at whose keys item `n` may be. */
export const numbersFor = (n: number): ReadonlyArray<number> =>
  Array.from(
    { length: Math.min(n, packItemsMax) },
    (_, at) => n - Math.min(n, packItemsMax) + 1 + at
  )
