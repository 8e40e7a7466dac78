/** Listings of subjects by the stream's leader, page by page. */
import { keysPerReadMax, listingCacheMs, listingOverlapNames, readTimeoutMs } from "../../limits.ts"
import { retryUntilDeadline } from "../connection/index.ts"
import { callApi, type StreamAccess, type StreamInfo } from "./reader.ts"

export interface SubjectPage {
  /** Sorted by bytes; subjects are ASCII. */
  readonly subjects: ReadonlyArray<string>
  /** A sequence that covers the subjects. */
  readonly lastSeq: number
}

/**
 * The subjects that match, among them everything that was acknowledged before the call. The leader
 * lists once it has reached the read barrier; `knownSeq` is one that the caller has taken.
 *
 * A page is requested by the number of names before it, and names that are removed meanwhile shift
 * it. So each page overlaps the last one, and names of the last page are left out.
 */
export async function* listSubjects(
  nats: StreamAccess,
  stream: string,
  filter: string,
  knownSeq?: number
): AsyncGenerator<SubjectPage> {
  const minSeq = knownSeq ?? (await nats.readBarrier(stream))?.seq ?? 0
  const page = async (offset: number) => {
    const question = { subjects_filter: filter, offset }
    let timeoutMs = readTimeoutMs
    const { state, total = 0 } = await retryUntilDeadline(async () => {
      const answer = await callApi<StreamInfo>(nats, `STREAM.INFO.${stream}`, question, timeoutMs)
        // Among millions of names the leader needs longer than for anything else.
        .finally(() => timeoutMs *= 2)
      if (answer.state.last_seq >= minSeq) return answer
      throw new Error(`the leader of ${stream} has not reached sequence ${minSeq}`)
    })
    return { names: Object.keys(state.subjects ?? {}).sort(), lastSeq: state.last_seq, total }
  }
  let last: string | undefined
  for (let [offset, back] = [0, listingOverlapNames];;) {
    const { lastSeq, names, total } = await page(offset)
    const [first] = names
    // Names may lie between the last one returned and this page.
    if (last !== undefined && offset > 0 && (first === undefined || first > last)) {
      offset = Math.max(0, offset - back)
      back *= 2
      continue
    }
    back = listingOverlapNames
    const returned = last
    const subjects = returned === undefined ? names : names.filter((name) => name > returned)
    if (subjects.length > 0) yield { subjects, lastSeq }
    last = subjects.at(-1) ?? last
    if (names.length === 0 || offset + names.length >= total) return
    offset = Math.max(offset + 1, offset + names.length - listingOverlapNames)
  }
}

/** The list in pages of at most `keysPerReadMax`. */
export const pagesOf = <A>(list: ReadonlyArray<A>): ReadonlyArray<ReadonlyArray<A>> =>
  Array.from(
    { length: Math.ceil(list.length / keysPerReadMax) },
    (_, page) => list.slice(page * keysPerReadMax, (page + 1) * keysPerReadMax)
  )

/**
 * All candidates above `after`, ascending by id, from a listing in any order. Each pass over the
 * listing keeps the first `idsMax` of those that are left, so that memory is bounded.
 */
export async function* inOrderOfId<A extends { readonly id: string }>(
  list: () => AsyncIterable<ReadonlyArray<A>>,
  after: string | undefined,
  idsMax: number
): AsyncGenerator<ReadonlyArray<A>> {
  for (let last = after;;) {
    let first: Array<A> = []
    let isCut = false
    const cut = (): void => {
      first.sort((a, b) => a.id < b.id ? -1 : 1)
      isCut ||= first.length > idsMax
      first = first.slice(0, idsMax)
    }
    for await (const candidates of list()) {
      for (const candidate of candidates) {
        if (last !== undefined && candidate.id <= last) continue
        first.push(candidate)
        if (first.length >= 2 * idsMax) cut()
      }
    }
    cut()
    if (first.length > 0) yield first
    last = first.at(-1)?.id
    if (!isCut) return
  }
}

/** A listing that has arrived at the id `after`. */
interface OpenListing<A> {
  readonly scope: string
  readonly after: string
  readonly pages: AsyncIterator<ReadonlyArray<A>>
  /** The listing's last page, of which the first `at` candidates were taken. */
  readonly candidates: ReadonlyArray<A>
  readonly at: number
  readonly untilMs: number
}

/**
 * Pages of ids. It holds one page of the listing, however long that is. The next page of ids
 * continues the listing of the last one for `listingCacheMs`.
 */
export class IdPager<A> {
  private readonly list: (
    scope: string,
    after: string | undefined
  ) => AsyncIterator<ReadonlyArray<A>>
  private readonly idsOf: (candidates: ReadonlyArray<A>) => Promise<ReadonlyArray<string>>
  private open: OpenListing<A> | undefined

  /** `list`: the candidates above `after`, ascending; `idsOf`: the ids of those that exist. */
  constructor(list: IdPager<A>["list"], idsOf: IdPager<A>["idsOf"]) {
    this.list = list
    this.idsOf = idsOf
  }

  async page(
    scope: string,
    after: string | undefined,
    limit: number
  ): Promise<ReadonlyArray<string>> {
    if (limit <= 0) return []
    const { at: start, candidates: rest, pages } = this.take(scope, after)
    const ids: Array<string> = []
    let candidates = rest
    let at = start
    while (ids.length < limit) {
      if (at >= candidates.length) {
        const page = await pages.next()
        if (page.done === true) return ids
        candidates = page.value
        at = 0
        continue
      }
      const some = candidates.slice(at, at + Math.min(limit - ids.length, keysPerReadMax))
      ids.push(...await this.idsOf(some))
      at += some.length
    }
    const last = ids.at(-1) ?? ""
    const untilMs = performance.now() + listingCacheMs
    this.open = { scope, after: last, pages, candidates, at, untilMs }
    return ids
  }

  /** The open listing, which only one caller may continue, or a new one. */
  private take(
    scope: string,
    after: string | undefined
  ): Pick<OpenListing<A>, "pages" | "candidates" | "at"> {
    const { open } = this
    const continues = open !== undefined && open.scope === scope && open.after === after &&
      open.untilMs > performance.now()
    if (!continues) return { pages: this.list(scope, after), candidates: [], at: 0 }
    this.open = undefined
    return open
  }
}
