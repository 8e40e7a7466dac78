/** The ids of the actors of a kind, in order, over all buckets. */
import { scannedIdsMax } from "../../limits.ts"
import type { NatsApi } from "../connection/index.ts"
import { type Bucket, idOfState, IdPager, inOrderOfId, isMarker, listSubjects, readLastOfMany,
  statesOfKind } from "../stream/index.ts"

interface Candidate {
  readonly id: string
  readonly bucket: Bucket
  readonly subject: string
  /** A sequence of the bucket's stream that covers the subject. */
  readonly lastSeq: number
}

export class ActorScanner {
  private readonly nats: NatsApi
  private readonly buckets: ReadonlyArray<Bucket>
  private readonly pager: IdPager<Candidate>

  constructor(nats: NatsApi, buckets: ReadonlyArray<Bucket>) {
    this.nats = nats
    this.buckets = buckets
    this.pager = new IdPager(
      // Names are in order of their shards first.
      (kind, after) => inOrderOfId(() => this.list(kind), after, scannedIdsMax),
      (candidates) => this.idsOf(candidates)
    )
  }

  scan(
    kind: string,
    after: string | undefined,
    limit: number
  ): Promise<ReadonlyArray<string>> {
    return this.pager.page(kind, after, limit)
  }

  private async *list(kind: string): AsyncGenerator<ReadonlyArray<Candidate>> {
    for (const bucket of this.buckets) {
      const pages = listSubjects(this.nats, bucket.stream, statesOfKind(bucket, kind))
      for await (const { lastSeq, subjects } of pages) {
        yield subjects.map((subject) => {
          const id = idOfState(bucket, subject)
          return { id, bucket, subject, lastSeq }
        })
      }
    }
  }

  /** A subject may be that of a removed actor's marker. */
  private async idsOf(candidates: ReadonlyArray<Candidate>): Promise<ReadonlyArray<string>> {
    const existing = new Set<string>()
    for (const bucket of this.buckets) {
      const own = candidates.filter((candidate) => candidate.bucket === bucket)
      if (own.length === 0) continue
      const lastSeq = Math.max(...own.map((candidate) => candidate.lastSeq))
      const subjects = own.map(({ subject }) => subject)
      for (const stored of await readLastOfMany(this.nats, bucket.stream, subjects, lastSeq)) {
        if (!isMarker(stored)) existing.add(stored.subject)
      }
    }
    return candidates.flatMap(({ id, subject }) => existing.has(subject) ? [id] : [])
  }
}
