/**
 * Reading a cabinet: the logs of its mailboxes merged in the order of receipt, one page at a
 * time. Only what a page needs of each log is read, and a page looks at a bounded number of
 * notifications, so that one that finds little comes short and says where to go on.
 */
import { Effect } from "effect"
import type { CabinetQuery, CabinetView as Cabinet,
  KeptMailbox } from "../../../actors/cabinet/index.ts"
import { type MailboxView, parseSince } from "../../../actors/mailbox/index.ts"
import { isRefusal } from "../../../runtime/index.ts"
import { type Element, parseFragment } from "../../formats/xml/index.ts"
import { askedAtOnceMax, cabinetChunkItemsMin, cabinetScanCharsMax, cabinetScanItemsMax,
  pageEntriesMax } from "../../limits.ts"
import type { HandlerFailure, Service } from "../../pipeline/index.ts"
import { listAs, type MailboxEntry, type MailboxRef, mailboxRefNamed, readPage,
  startOf } from "../mailboxes/index.ts"
import { type CabinetSince, formatCabinetCursor, positionKey, timeOf } from "./cabinet-cursor.ts"

export type EntryFilter = (entry: MailboxEntry) => boolean

const fold = (text: string): string => text.normalize("NFC").toLowerCase()

/** All text of some nodes, so that no text runs over from one element into the next. */
const textIn = (nodes: ReadonlyArray<Element | string>): string =>
  nodes.map((node) => typeof node === "string" ? node : textIn(node.children)).join("\n")

/** Whether an entry is wanted: received at the time or later, and with the text, in any case. */
export const filterOf = (query: CabinetQuery | undefined): EntryFilter => {
  const atMs = query?.since === undefined ? undefined : timeOf(query.since)?.atMs
  const wanted = query?.contains === undefined ? undefined : fold(query.contains)
  return (entry) =>
    (atMs === undefined || entry.atMs >= atMs) &&
    (wanted === undefined || fold(textIn(parseFragment(entry.fragment))).includes(wanted))
}

/* Which notifications a cabinet's query wants. */

/** What a request for a cabinet asks for. */
export interface CabinetRequest {
  readonly since: CabinetSince | undefined
  readonly limit: number
}

/** Entries of one log, none between them passed over. */
export type EntryRun = ReadonlyArray<MailboxEntry>

/** One mailbox of the cabinet while a page is made of it. */
class Source {
  readonly place: MailboxRef
  /** Undefined when its reader has no right to it. */
  readonly view: MailboxView | undefined
  /** Up to here all has been looked at. */
  position: number
  /** When the item at the position was received; 0 while that is not known. */
  atMs = 0
  /** What was shown of it. */
  readonly runs: Array<Array<MailboxEntry>> = []
  private entries: ReadonlyArray<MailboxEntry> = []
  private taken = 0
  private after: number
  private more: boolean
  private passed = true

  constructor(place: MailboxRef, view: MailboxView | undefined, position: number) {
    this.place = place
    this.view = view
    this.position = position
    this.after = position
    this.more = view !== undefined
  }

  get next(): MailboxEntry | undefined {
    return this.entries[this.taken]
  }

  /** Whether more of its log has to be read before its next entry is known. */
  get isDry(): boolean {
    return this.more && this.taken >= this.entries.length
  }

  /** Goes on to the entry after `entry`, which is shown or passed over. */
  take(entry: MailboxEntry, isShown: boolean): void {
    this.taken++
    this.position = entry.n
    this.atMs = entry.atMs
    if (!isShown) this.passed = true
    else if (this.passed) {
      this.runs.push([entry])
      this.passed = false
    } else this.runs.at(-1)?.push(entry)
    this.settle()
  }

  /** Takes the next part of the log; `upTo` is the last number that it covers. */
  fill(entries: ReadonlyArray<MailboxEntry>, more: boolean, upTo: number): void {
    this.entries = entries
    this.taken = 0
    this.more = more
    this.after = Math.max(this.after, upTo)
    this.settle()
  }

  get readFrom(): number {
    return this.after
  }

  /** Where all is looked at that was read, the position is behind what was removed, too. */
  private settle(): void {
    if (this.taken < this.entries.length) return
    this.position = Math.max(this.position, this.after)
    if (!this.more) this.atMs = Math.max(this.atMs, this.view?.lastAtMs ?? 0)
  }
}

/** One notification of a page, and the mailbox that holds it. */
export interface MergedEntry {
  readonly place: MailboxRef
  readonly entry: MailboxEntry
}

/** One page of a cabinet, oldest first. */
export interface MergedPage {
  readonly mailboxes: ReadonlyArray<{ readonly place: MailboxRef; readonly isReadable: boolean }>
  readonly entries: ReadonlyArray<MergedEntry>
  /** The cursor behind all that the page covers. */
  readonly time: string
  readonly atMs: number
  readonly more: boolean
  /** What was shown of each mailbox. */
  readonly shown: ReadonlyArray<
    { readonly place: MailboxRef; readonly runs: ReadonlyArray<EntryRun> }
  >
}

/** The mailbox as the cabinet's owner may read it: by the account, or by the secret's hash. */
const viewOf = Effect.fnUntraced(function*(
  service: Service,
  place: MailboxRef,
  owner: string,
  { secretHash }: KeptMailbox
): Effect.fn.Return<MailboxView | undefined, HandlerFailure> {
  const reader = { account: owner, ...secretHash === undefined ? {} : { secretHash } }
  const reply = yield* listAs(service, place, reader).pipe(
    // One mailbox in trouble is not the others' trouble: what it holds comes when it is back.
    Effect.catchTag("Quarantined", () => Effect.succeed(undefined))
  )
  return reply === undefined || isRefusal(reply) ? undefined : reply.view
})

/** The mailbox, read from where the request and the query begin. */
const open = Effect.fnUntraced(function*(
  service: Service,
  cabinet: Cabinet,
  mailbox: KeptMailbox,
  since: CabinetSince | undefined
): Effect.fn.Return<Source, HandlerFailure> {
  const place = mailboxRefNamed(service, mailbox.name)
  const view = yield* viewOf(service, place, cabinet.owner, mailbox)
  const known = since?._tag === "Behind" ? since.positions.get(positionKey(mailbox.name)) ?? 0 : 0
  // What was not read keeps its position, for when it may be read again.
  if (view === undefined) return new Source(place, view, known)
  if (known > 0) return new Source(place, view, Math.min(known, view.head))
  const wished = since?._tag === "At" ? since : undefined
  const queried = cabinet.query?.since === undefined ? undefined : timeOf(cabinet.query.since)
  const later = (wished?.atMs ?? 0) >= (queried?.atMs ?? 0) ? wished : queried
  return new Source(place, view, yield* startOf(service, place, later, view.head))
})

/** A page under way. */
class Merge {
  readonly entries: Array<MergedEntry> = []
  /** In the order that decides between notifications of the same time. */
  private readonly sources: ReadonlyArray<Source>
  private readonly limit: number
  private readonly isWanted: EntryFilter
  private looked = 0
  private lookedChars = 0

  constructor(sources: ReadonlyArray<Source>, limit: number, isWanted: EntryFilter) {
    this.sources = sources
    this.limit = limit
    this.isWanted = isWanted
  }

  get isFull(): boolean {
    return this.entries.length >= this.limit || this.looked >= cabinetScanItemsMax ||
      this.lookedChars >= cabinetScanCharsMax
  }

  /** Counts a reading that found nothing, so that not even those are without end. */
  count(items: number): void {
    this.looked += items
  }

  get dry(): ReadonlyArray<Source> {
    return this.sources.filter((source) => source.isDry)
  }

  /** Whether anything is left, as far as is known. */
  get isOver(): boolean {
    return this.sources.every((source) => !source.isDry && source.next === undefined)
  }

  /** Merges until the page is full, or a log has to be read on, or all are at their end. */
  advance(): void {
    while (!this.isFull) {
      let source: Source | undefined
      let entry: MailboxEntry | undefined
      for (const other of this.sources) {
        if (other.isDry) return
        const { next } = other
        if (next !== undefined && (entry === undefined || next.atMs < entry.atMs)) {
          source = other
          entry = next
        }
      }
      if (source === undefined || entry === undefined) return
      this.looked++
      this.lookedChars += entry.fragment.length
      const isShown = this.isWanted(entry)
      source.take(entry, isShown)
      if (isShown) this.entries.push({ place: source.place, entry })
    }
  }
}

const byName = (left: Source, right: Source): number => left.place.name < right.place.name ? -1 : 1

/** Reads on where a log has to be: a part as long as the number of mailboxes leaves room for. */
const fill = (service: Service, merge: Merge, chunk: number) =>
  Effect.forEach(merge.dry, (source) =>
    Effect.gen(function*() {
      const { place, readFrom, view } = source
      if (view === undefined) return
      const since = { _tag: "After" as const, n: readFrom }
      // What is read beyond the head that was told is there all the same.
      const page = yield* readPage(service, place, view, { since, limit: chunk, read: true })
      const time = parseSince(page.time)
      source.fill(page.entries, page.more, time?._tag === "After" ? time.n : readFrom)
      if (page.entries.length === 0) merge.count(chunk)
    }), { concurrency: askedAtOnceMax, discard: true })

/**
 * One page of a cabinet for its owner. A notification that was deposited before the page was
 * read is on it, or behind its `time`: that names how far each log has been read, and log numbers
 * follow the order of commits.
 */
export const readCabinet = Effect.fnUntraced(function*(
  service: Service,
  cabinet: Cabinet,
  { limit, since }: CabinetRequest
): Effect.fn.Return<MergedPage, HandlerFailure> {
  const sources = yield* Effect.forEach(
    cabinet.mailboxes,
    (mailbox) => open(service, cabinet, mailbox, since),
    { concurrency: askedAtOnceMax }
  )
  const readable = sources.filter(({ view }) => view !== undefined).toSorted(byName)
  const share = Math.floor(pageEntriesMax / Math.max(1, readable.length))
  const chunk = Math.max(cabinetChunkItemsMin, Math.min(limit + 1, share))
  const merge = new Merge(readable, limit, filterOf(cabinet.query))
  while (!merge.isFull && !merge.isOver) {
    yield* fill(service, merge, chunk)
    merge.advance()
  }
  const atMs = sources.reduce((most, source) => Math.max(most, source.atMs), cabinet.createdAtMs)
  return {
    mailboxes: sources.map(({ place, view }) => ({ place, isReadable: view !== undefined })),
    entries: merge.entries,
    atMs,
    time: formatCabinetCursor(atMs, sources.map(({ place, position }) => [place.name, position])),
    more: !merge.isOver,
    shown: readable.map(({ place, runs }) => ({ place, runs }))
  }
})
