/**
 * Possible contents of a folder after a loss of power, from the record of `faults.c`. Durable are
 * the bytes that a file had when a completed flush of it began, and the entries of a flushed
 * folder. As on every journaling file system, the flush of a file also makes its first name
 * durable. Other changes survive in part, or not at all.
 */
import { mkdirSync, writeFileSync } from "node:fs"
import { dirname, join } from "node:path"

/** What survives of changes that were not flushed. */
export interface SurvivingChanges {
  /** For each file: nothing, a prefix with a torn sector, or everything. */
  readonly data: "none" | "some" | "all"
  /** Created, changed and removed names: only flushed ones, or all. */
  readonly names: "none" | "all"
}

interface Change {
  readonly at: number
  /** The bytes of a write; undefined truncates the file here. */
  readonly bytes: Buffer | undefined
}

class File {
  readonly changes: Array<Change> = []
  /** The number of durable changes. */
  flushed = 0
}

type Names = Map<string, File | "folder">

interface Flush {
  readonly path: string
  readonly changes: number
  /** The entries of a folder. */
  readonly listed: Names | undefined
}

const SECTOR = 512

const listed = (names: Names, folder: string): Names =>
  new Map([...names].filter(([path]) => dirname(path) === folder))

/** Replays a record up to any of its entries. */
export class PowerLossReplay {
  /** Standard output of the process. */
  output = ""
  private readonly record: Buffer
  private readonly under: string
  private readonly now: Names = new Map()
  private readonly durable: Names = new Map()
  private readonly flushes = new Map<string, Flush>()
  private at = 0

  constructor(record: Buffer, under: string) {
    this.record = record
    this.under = under
    this.now.set(under, "folder")
    this.durable.set(under, "folder")
  }

  /** Adds a file that was durable before the record began. */
  addDurable(path: string, bytes: Buffer): void {
    const file = new File()
    file.changes.push({ at: 0, bytes })
    file.flushed = 1
    this.now.set(path, file)
    this.durable.set(path, file)
  }

  /** Replays one more entry; false when there is none. */
  step(): boolean {
    const end = this.record.indexOf("\n", this.at)
    if (end < 0) return false
    const line = this.record.toString("utf8", this.at, end)
    const [kind = "", first = "", second = ""] = line.split(" ")
    const pathFrom = (words: number) => line.split(" ").slice(words).join(" ")
    const length = kind === "W" ? Number(second) : kind === "S" || kind === "R" ? Number(first) : 0
    const bytes = this.record.subarray(end + 1, end + 1 + length)
    this.at = end + 2 + length
    if (kind === "S") this.output += bytes.toString()
    else if (kind === "C") this.now.set(pathFrom(1), new File())
    else if (kind === "M") this.now.set(pathFrom(1), "folder")
    else if (kind === "U") this.now.delete(pathFrom(1))
    else if (kind === "W") this.change(pathFrom(3), { at: Number(first), bytes })
    else if (kind === "T") this.change(pathFrom(2), { at: Number(first), bytes: undefined })
    else if (kind === "R") this.rename(pathFrom(2), bytes.toString())
    else if (kind === "B") this.begin(first, pathFrom(2))
    else if (kind === "E") this.end(first)
    else throw new Error(`no entry of a record: ${line.slice(0, 100)}`)
    return true
  }

  /** Writes the folder as it may be after a loss of power now. `random`: from 0 up to 1. */
  build(folder: string, { data, names }: SurvivingChanges, random: () => number): void {
    const there = names === "all" ? this.now : this.durable
    const isThere = (path: string): boolean =>
      path === this.under || (there.has(path) && isThere(dirname(path)))
    for (const [path, what] of [...there].sort()) {
      if (!isThere(path)) continue
      const place = join(folder, path.slice(this.under.length))
      if (what === "folder") mkdirSync(place, { recursive: true })
      else writeFileSync(place, contentOf(what, data, random))
    }
  }

  private change(path: string, change: Change): void {
    const file = this.now.get(path)
    // The file was removed while it was open.
    if (file instanceof File) file.changes.push(change)
  }

  private rename(from: string, to: string): void {
    const file = this.now.get(from)
    this.now.delete(from)
    if (file !== undefined) this.now.set(to, file)
  }

  private begin(flush: string, path: string): void {
    const what = this.now.get(path)
    const changes = what instanceof File ? what.changes.length : 0
    const names = what === "folder" ? listed(this.now, path) : undefined
    this.flushes.set(flush, { path, changes, listed: names })
  }

  private end(number: string): void {
    const flush = this.flushes.get(number)
    this.flushes.delete(number)
    if (flush === undefined) throw new Error(`flush ${number} ended and did not begin`)
    if (flush.listed === undefined) {
      const file = this.now.get(flush.path)
      if (!(file instanceof File)) return
      file.flushed = Math.max(file.flushed, flush.changes)
      if (![...this.durable.values()].includes(file)) this.durable.set(flush.path, file)
      return
    }
    for (const path of listed(this.durable, flush.path).keys()) this.durable.delete(path)
    for (const [path, what] of flush.listed) this.durable.set(path, what)
  }
}

const contentOf = (file: File, data: SurvivingChanges["data"], random: () => number): Buffer => {
  const { changes, flushed } = file
  const left = changes.length - flushed
  const more = data === "none" ? 0 : data === "all" ? left : Math.floor(random() * (left + 1))
  const torn = data === "some" ? changes[flushed + more] : undefined
  let content = Buffer.alloc(0)
  const apply = ({ at, bytes }: Change): void => {
    const size = bytes === undefined ? at : Math.max(content.length, at + bytes.length)
    const next = Buffer.alloc(size)
    content.copy(next)
    bytes?.copy(next, at)
    content = next
  }
  for (const change of merged(changes.slice(0, flushed + more))) apply(change)
  if (torn?.bytes !== undefined) {
    const sectors = Math.floor(random() * (1 + torn.bytes.length / SECTOR))
    apply({ at: torn.at, bytes: torn.bytes.subarray(0, sectors * SECTOR) })
  }
  return content
}

/** Merges adjacent writes. */
const merged = (changes: ReadonlyArray<Change>): ReadonlyArray<Change> => {
  const runs: Array<{ at: number; parts: Array<Buffer> | undefined; end: number }> = []
  for (const { at, bytes } of changes) {
    const last = runs.at(-1)
    if (bytes !== undefined && last?.parts !== undefined && last.end === at) {
      last.parts.push(bytes)
      last.end += bytes.length
    } else {
      runs.push({ at, parts: bytes && [bytes], end: at + (bytes?.length ?? 0) })
    }
  }
  return runs.map(({ at, parts }) => ({ at, bytes: parts && Buffer.concat(parts) }))
}
