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

interface CachedListing<A> {
  readonly scope: string
  readonly candidates: ReadonlyArray<A>
  readonly at: number
  readonly after: string
  readonly untilMs: number
}

/** Pages of ids. The next page continues the listing of the last one for `listingCacheMs`. */
export class IdPager<A> {
  private readonly list: (scope: string, after: string | undefined) => Promise<ReadonlyArray<A>>
  private readonly idsOf: (candidates: ReadonlyArray<A>) => Promise<ReadonlyArray<string>>
  private cached: CachedListing<A> | undefined

  /** `list`: the sorted candidates above `after`; `idsOf`: the ids of those that exist. */
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
    const { cached } = this
    const isNext = cached !== undefined && cached.scope === scope && cached.after === after &&
      cached.untilMs > performance.now()
    const candidates = isNext ? cached.candidates : await this.list(scope, after)
    const ids: Array<string> = []
    let at = isNext ? cached.at : 0
    while (ids.length < limit && at < candidates.length) {
      const some = candidates.slice(at, at + Math.min(limit - ids.length, keysPerReadMax))
      ids.push(...await this.idsOf(some))
      at += some.length
    }
    const last = ids.at(-1)
    this.cached = last === undefined || at >= candidates.length
      ? undefined
      : { scope, candidates, at, after: last, untilMs: performance.now() + listingCacheMs }
    return ids
  }
}
