/**
 * Reading a cabinet: merges the logs of its mailboxes in the order of receipt, one page at a time.
 * A page reads only the parts of the logs that it needs. It scans a bounded number of
 * notifications, so that a page whose query matches little is short and links to the next one.
 */
import { Effect } from "effect"
import type { CabinetMailbox, CabinetQuery, CabinetView } from "../../../actors/cabinet/index.ts"
import { type MailboxView, parseSince } from "../../../actors/mailbox/index.ts"
import { isRefusal } from "../../../runtime/index.ts"
import { type Element, parseFragment } from "../../formats/xml/index.ts"
import { askedAtOnceMax, cabinetChunkItemsMin, cabinetScanCharsMax, cabinetScanItemsMax,
  cabinetTurnCharsMax, pageEntriesMax } from "../../limits.ts"
import { type HandlerFailure, type Service, unknownCursor } from "../../pipeline/index.ts"
import { fold, pause } from "../../query-engine/index.ts"
import { charsOnPage, describeForReader, findPosition, hasRoom, type ListingPage, listingStart,
  type MailboxEntry, type MailboxRef, mailboxRefNamed, readPage } from "../mailboxes/index.ts"
import { type CabinetSince, cursorKey, formatCabinetCursor, timeOf } from "./cabinet-cursor.ts"

/* Which notifications a cabinet's query matches. */

type EntryFilter = (entry: MailboxEntry) => boolean

/** All text of some nodes, with a line break between two elements. */
const textIn = (nodes: ReadonlyArray<Element | string>): string =>
  nodes.map((node) => typeof node === "string" ? node : textIn(node.children)).join("\n")

/** Matches entries received at the time or later that contain the text, in any case. */
const filterOf = (query: CabinetQuery | undefined): EntryFilter => {
  const atMs = query?.since === undefined ? undefined : timeOf(query.since)?.atMs
  const text = query?.contains === undefined ? undefined : fold(query.contains)
  return (entry) =>
    (atMs === undefined || entry.atMs >= atMs) &&
    (text === undefined || fold(textIn(parseFragment(entry.fragment))).includes(text))
}

/* Merging the logs. */

/** The parameters of a request for a cabinet. */
export interface CabinetRequest {
  /** The id of the cabinet. */
  readonly id: string
  readonly since: CabinetSince | undefined
  readonly limit: number
}

/** Consecutive entries of one log that a page shows. */
type EntryRun = ReadonlyArray<MailboxEntry>

/** One mailbox of the cabinet while a page is merged. */
class MailboxSource {
  readonly mailbox: MailboxRef
  /** Undefined when the cabinet's owner may not read it. */
  readonly view: MailboxView | undefined
  /** Every item up to this number is merged. */
  position: number
  /** When the item at the position was received; 0 while unknown. */
  atMs = 0
  /** The entries that the page shows. */
  readonly runs: Array<Array<MailboxEntry>> = []
  /** Every item up to this number is read. */
  readUpTo: number
  /** When the last of them was received; 0 while unknown. */
  private readUpToMs = 0
  private entries: ReadonlyArray<MailboxEntry> = []
  private merged = 0
  private hasMore: boolean
  private startsRun = true

  /** Whether what followed the position of the request has been removed. */
  readonly isDiscarded: boolean
  /** Whether the cursor has a position in its log: a mailbox that was never read has none. */
  readonly wasRead: boolean

  constructor(
    mailbox: MailboxRef,
    view: MailboxView | undefined,
    position: number | undefined,
    isDiscarded = false
  ) {
    this.mailbox = mailbox
    this.view = view
    this.isDiscarded = isDiscarded
    this.wasRead = position !== undefined
    this.position = position ?? 0
    this.readUpTo = this.position
    this.hasMore = view !== undefined
  }

  get next(): MailboxEntry | undefined {
    return this.entries[this.merged]
  }

  /** Whether more of its log must be read before its next entry is known. */
  get needsRead(): boolean {
    return this.hasMore && this.merged >= this.entries.length
  }

  /** Moves past its next entry, which the page shows or the query excludes. */
  advance(entry: MailboxEntry, isShown: boolean): void {
    this.merged++
    this.position = entry.n
    this.atMs = entry.atMs
    if (!isShown) this.startsRun = true
    else if (this.startsRun) {
      this.runs.push([entry])
      this.startsRun = false
    } else this.runs.at(-1)?.push(entry)
    this.skipRemoved()
  }

  /** Adds the next part of the log, which covers the numbers up to `upTo`, received at `atMs`. */
  add(
    { entries, more }: Pick<ListingPage, "entries" | "more">,
    { atMs, upTo }: { readonly atMs: number; readonly upTo: number }
  ): void {
    this.entries = entries
    this.merged = 0
    this.hasMore = more
    this.readUpTo = Math.max(this.readUpTo, upTo)
    this.readUpToMs = Math.max(this.readUpToMs, atMs)
    this.skipRemoved()
  }

  /** When all that was read is merged, the position moves past removed items too. */
  private skipRemoved(): void {
    if (this.merged < this.entries.length) return
    this.position = Math.max(this.position, this.readUpTo)
    this.atMs = Math.max(this.atMs, this.readUpToMs)
  }
}

/** One notification of a page, and the mailbox that holds it. */
export interface MergedEntry {
  readonly mailbox: MailboxRef
  readonly entry: MailboxEntry
}

/** One page of a cabinet, oldest first. */
export interface MergedPage {
  readonly mailboxes: ReadonlyArray<{
    readonly mailbox: MailboxRef
    readonly isReadable: boolean
    readonly isDiscarded: boolean
  }>
  readonly entries: ReadonlyArray<MergedEntry>
  /** The cursor after everything that the page covers. */
  readonly time: string
  readonly atMs: number
  readonly hasMore: boolean
  /** The entries of each mailbox that the page shows. */
  readonly shown: ReadonlyArray<
    { readonly mailbox: MailboxRef; readonly runs: ReadonlyArray<EntryRun> }
  >
}

/** Whether a mailbox of the page has lost what followed the position of the request. */
export const hasDiscarded = ({ mailboxes }: MergedPage): boolean =>
  mailboxes.some(({ isDiscarded }) => isDiscarded)

/** The mailbox as the cabinet's owner may read it: by the account, or by the secret's hash. */
const viewOf = Effect.fnUntraced(function*(
  service: Service,
  mailbox: MailboxRef,
  owner: string,
  { secretHash }: CabinetMailbox
): Effect.fn.Return<MailboxView | undefined, HandlerFailure> {
  const reader = { account: owner, ...secretHash === undefined ? {} : { secretHash } }
  const view = yield* describeForReader(service, mailbox, reader).pipe(
    // A quarantined mailbox does not stop the others: its notifications come when it is back.
    Effect.catchTag("Quarantined", () => Effect.succeed(undefined))
  )
  return view === undefined || isRefusal(view) ? undefined : view
})

/** A mailbox, read from where the request and the query begin. */
const openSource = Effect.fnUntraced(function*(
  service: Service,
  cabinet: CabinetView,
  listed: CabinetMailbox,
  since: CabinetSince | undefined
): Effect.fn.Return<MailboxSource, HandlerFailure> {
  const mailbox = mailboxRefNamed(service, listed.name)
  const view = yield* viewOf(service, mailbox, cabinet.owner, listed)
  const position = since?._tag === "Behind"
    ? since.positions.get(cursorKey(listed.name))
    : undefined
  // A mailbox that could not be read keeps its position until it can be read again.
  if (view === undefined) return new MailboxSource(mailbox, view, position)
  if (since?._tag === "Behind" && position !== undefined && position > 0) {
    const { atMs } = since
    const found = yield* findPosition(service, mailbox, view, { n: position, atMostMs: atMs })
    if (found.state === "unknown") return yield* unknownCursor("since", "cabinet")
    return new MailboxSource(mailbox, view, found.after, found.state === "discarded")
  }
  const requested = since?._tag === "At" ? since : undefined
  const queried = cabinet.query?.since === undefined ? undefined : timeOf(cabinet.query.since)
  const later = (requested?.atMs ?? 0) >= (queried?.atMs ?? 0) ? requested : queried
  const { head, removedUpTo = 0 } = view
  const start = yield* listingStart(service, mailbox, later, head)
  // Behind what is already removed, so that a position of 0 had nothing before it.
  const isDiscarded = position === 0 && removedUpTo > 0
  return new MailboxSource(mailbox, view, Math.max(start, removedUpTo), isDiscarded)
})

/** Merges the notifications of several mailboxes into one page. */
class PageMerge {
  readonly entries: Array<MergedEntry> = []
  /** The mailboxes by name. The name decides the order of notifications of the same time. */
  private readonly sources: ReadonlyArray<MailboxSource>
  private readonly limit: number
  private readonly matches: EntryFilter
  private scannedItems = 0
  private scannedChars = 0
  private shownChars = 0
  /** Whether the next notification is for the next page, as this one has no room for it. */
  private isOverfull = false
  private turnEndChars = cabinetTurnCharsMax

  constructor(sources: ReadonlyArray<MailboxSource>, limit: number, matches: EntryFilter) {
    this.sources = sources
    this.limit = limit
    this.matches = matches
  }

  get isFull(): boolean {
    return this.isOverfull || this.entries.length >= this.limit ||
      this.scannedItems >= cabinetScanItemsMax || this.scannedChars >= cabinetScanCharsMax
  }

  /** Whether the merge has scanned so much that other work should go on before the rest. */
  get isTurnOver(): boolean {
    return this.scannedChars >= this.turnEndChars
  }

  beginTurn(): void {
    this.turnEndChars = this.scannedChars + cabinetTurnCharsMax
  }

  /** Counts a read that found no entry, so that the number of those is bounded too. */
  countEmptyRead(items: number): void {
    this.scannedItems += items
  }

  get sourcesToRead(): ReadonlyArray<MailboxSource> {
    return this.sources.filter((source) => source.needsRead)
  }

  /** Whether every log is merged to its end. */
  get isComplete(): boolean {
    return this.sources.every((source) => !source.needsRead && source.next === undefined)
  }

  /**
   * Merges until the page is full, the turn is over, a log must be read further, or all logs are at
   * their end.
   */
  advance(): void {
    while (!this.isFull && !this.isTurnOver) {
      let source: MailboxSource | undefined
      let entry: MailboxEntry | undefined
      for (const other of this.sources) {
        if (other.needsRead) return
        const { next } = other
        if (next !== undefined && (entry === undefined || next.atMs < entry.atMs)) {
          source = other
          entry = next
        }
      }
      if (source === undefined || entry === undefined) return
      this.scan(source, entry)
    }
  }

  /** Moves past an entry, unless it is to be shown and the page has no room for it. */
  private scan(source: MailboxSource, entry: MailboxEntry): void {
    const chars = entry.fragment.length
    this.scannedItems++
    this.scannedChars += chars
    const isShown = this.matches(entry)
    const shownChars = this.shownChars + charsOnPage(entry.fragment, this.shownChars)
    this.isOverfull = isShown && !hasRoom(this.entries.length, shownChars)
    if (this.isOverfull) return
    source.advance(entry, isShown)
    if (!isShown) return
    this.entries.push({ mailbox: source.mailbox, entry })
    this.shownChars = shownChars
  }
}

const byName = (left: MailboxSource, right: MailboxSource): number =>
  left.mailbox.name < right.mailbox.name ? -1 : 1

/** Reads the next `chunk` items of every log that needs them. */
const readSources = (service: Service, merge: PageMerge, chunk: number) =>
  Effect.forEach(merge.sourcesToRead, (source) =>
    Effect.gen(function*() {
      const { mailbox, readUpTo, view } = source
      if (view === undefined) return
      const since = { _tag: "After" as const, n: readUpTo }
      // Items beyond the head of the view are committed too, and may be shown.
      const page = yield* readPage(service, mailbox, view, { since, limit: chunk, read: true })
      const time = parseSince(page.time)
      source.add(page, { upTo: time?._tag === "After" ? time.n : readUpTo, atMs: time?.atMs ?? 0 })
      if (page.entries.length === 0) merge.countEmptyRead(chunk)
    }), { concurrency: askedAtOnceMax, discard: true })

/**
 * One page of a cabinet for its owner. A notification that was deposited before the page was read
 * is on it or after its `time`, which names how far each log has been read: log numbers follow the
 * order of commits.
 */
export const readCabinet = Effect.fnUntraced(function*(
  service: Service,
  cabinet: CabinetView,
  { id, limit, since }: CabinetRequest
): Effect.fn.Return<MergedPage, HandlerFailure> {
  if (since?._tag === "Behind" && since.cabinet !== cursorKey(id)) {
    return yield* unknownCursor("since", "cabinet")
  }
  const sources = yield* Effect.forEach(
    cabinet.mailboxes,
    (listed) => openSource(service, cabinet, listed, since),
    { concurrency: askedAtOnceMax }
  )
  const readable = sources.filter(({ view }) => view !== undefined).toSorted(byName)
  const share = Math.floor(pageEntriesMax / Math.max(1, readable.length))
  const chunk = Math.max(cabinetChunkItemsMin, Math.min(limit + 1, share))
  const merge = new PageMerge(readable, limit, filterOf(cabinet.query))
  while (!merge.isFull && !merge.isComplete) {
    yield* readSources(service, merge, chunk)
    merge.advance()
    if (!merge.isTurnOver) continue
    yield* pause
    merge.beginTurn()
  }
  const sinceMs = since?._tag === "Behind" ? since.atMs : 0
  const times = sources.map((source) => source.atMs)
  const atMs = Math.max(cabinet.createdAtMs, sinceMs, ...times)
  return {
    mailboxes: sources.map(({ isDiscarded, mailbox, view }) => ({
      mailbox,
      isReadable: view !== undefined,
      isDiscarded
    })),
    entries: merge.entries,
    atMs,
    time: formatCabinetCursor(
      id,
      atMs,
      sources.filter(({ wasRead }) => wasRead)
        .map(({ mailbox, position }) => [mailbox.name, position])
    ),
    hasMore: !merge.isComplete,
    shown: readable.map(({ mailbox, runs }) => ({ mailbox, runs }))
  }
})
