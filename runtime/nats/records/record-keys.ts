/**
 * The subject of a record: `$KV.records.<table>.<part>.<part>…`. The key is split at each `/`; in a
 * part each byte other than letters, digits, `_` and `-` is `=XX`, and an empty part is `=`. So one
 * filter selects the keys of one owner, `<owner>/…`.
 */
import { recordsBucket } from "../../limits.ts"
import { bucketNamed } from "../stream/index.ts"

export const recordsKv = bucketNamed(recordsBucket)

const isPlain = (byte: number): boolean =>
  (byte >= 0x30 && byte <= 0x39) || (byte >= 0x41 && byte <= 0x5a) ||
  (byte >= 0x61 && byte <= 0x7a) || byte === 0x5f || byte === 0x2d

const plain = /^[A-Za-z0-9_-]+$/

const encodePart = (part: string): string => {
  if (plain.test(part)) return part
  if (part === "") return "="
  let text = ""
  for (const byte of Buffer.from(part)) {
    text += isPlain(byte)
      ? String.fromCharCode(byte)
      : `=${byte.toString(16).toUpperCase().padStart(2, "0")}`
  }
  return text
}

const decodePart = (part: string): string => {
  if (part === "=") return ""
  if (plain.test(part)) return part
  return decodeURIComponent(part.replaceAll("=", "%"))
}

export const recordSubject = (table: string, key: string): string =>
  `${recordsKv.prefix}${table}.${key.split("/").map(encodePart).join(".")}`

/** All records of a table, or those whose key begins with `<part>/`. */
export const recordsFilter = (table: string, part: string | undefined): string =>
  `${recordsKv.prefix}${table}.${part === undefined ? "" : `${encodePart(part)}.`}>`

/** Table and key of a subject. */
export const recordOf = (subject: string): { readonly table: string; readonly key: string } => {
  const [table = "", ...parts] = subject.slice(recordsKv.prefix.length).split(".")
  return { table, key: parts.map(decodePart).join("/") }
}
