/** The ids of the actors of a kind, in order, over all buckets. */
import { keysPerReadMax, listingCacheMs } from "../../limits.ts"
import type { NatsApi } from "../connection/index.ts"
import { type Bucket, idOfState, listSubjects, readLastOfMany,
  statesOfKind } from "../stream/index.ts"
import { isMarker } from "./actor-entry.ts"

interface Candidate {
  readonly id: string
  readonly place: Bucket
  readonly subject: string
}

interface Listing {
  readonly candidates: ReadonlyArray<Candidate>
  /** For each place a sequence that covers what was listed. */
  readonly lastSeqs: ReadonlyMap<Bucket, number>
}

/** A listing that the next page of whoever reads on goes on with. */
interface Continued extends Listing {
  readonly kind: string
  readonly after: string
  readonly at: number
  readonly untilMs: number
}

export class ActorScanner {
  private readonly nats: NatsApi
  private readonly places: ReadonlyArray<Bucket>
  private continued: Continued | undefined

  constructor(nats: NatsApi, places: ReadonlyArray<Bucket>) {
    this.nats = nats
    this.places = places
  }

  async scan(kind: string, after: string | undefined, limit: number) {
    const { continued } = this
    const goesOn = continued !== undefined && continued.kind === kind &&
      continued.after === after && continued.untilMs > performance.now()
    const listing = goesOn ? continued : await this.list(kind, after)
    const ids: Array<string> = []
    let at = goesOn ? continued.at : 0
    while (ids.length < limit && at < listing.candidates.length) {
      const page = listing.candidates.slice(at, at + Math.min(limit - ids.length, keysPerReadMax))
      ids.push(...await this.living(listing, page))
      at += page.length
    }
    const last = ids.at(-1)
    this.continued = last === undefined || at >= listing.candidates.length
      ? undefined
      : { ...listing, kind, after: last, at, untilMs: performance.now() + listingCacheMs }
    return ids
  }

  private async list(kind: string, after: string | undefined): Promise<Listing> {
    const candidates: Array<Candidate> = []
    const lastSeqs = new Map<Bucket, number>()
    for (const place of this.places) {
      const listing = listSubjects(this.nats, place.stream, statesOfKind(place, kind))
      for await (const { lastSeq, subjects } of listing) {
        lastSeqs.set(place, lastSeq)
        for (const subject of subjects) {
          const id = idOfState(place, subject)
          if (after === undefined || id > after) candidates.push({ id, place, subject })
        }
      }
    }
    candidates.sort((a, b) => a.id < b.id ? -1 : 1)
    return { candidates, lastSeqs }
  }

  /** Those of a page whose record is more than a mark, in the page's order. */
  private async living(
    { lastSeqs }: Listing,
    page: ReadonlyArray<Candidate>
  ): Promise<ReadonlyArray<string>> {
    const living = new Set<string>()
    for (const place of this.places) {
      const subjects = page.filter((candidate) => candidate.place === place)
        .map(({ subject }) => subject)
      if (subjects.length === 0) continue
      const lastSeq = lastSeqs.get(place) ?? 0
      for (const stored of await readLastOfMany(this.nats, place.stream, subjects, lastSeq)) {
        if (!isMarker(stored)) living.add(stored.subject)
      }
    }
    return page.flatMap(({ id, subject }) => living.has(subject) ? [id] : [])
  }
}
