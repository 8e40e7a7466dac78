/** Reading one actor from the leader of its stream. */
import type { Address } from "../address.ts"
import type { NatsApi } from "./connection.ts"
import { actorKeys, type BucketPlace } from "./keys.ts"
import { numbersFor } from "./packs.ts"
import { last, lastOfMany, momentOf } from "./reader.ts"
import { type ActorEntry, countOf, entryOf, isItem } from "./record.ts"

/** The end of a stored pack of items, as far as one copy shows. */
interface End {
  readonly n: number
  readonly seq: number
}

/**
 * The end of the log above the recorded head. Items there are without gaps, as whatever leaves a
 * gap writes the record; so it is enough to look at ever longer steps, and then to halve. These
 * looks may miss what is there, as any copy answers them: the caller goes on from what they find.
 */
const findEnd = async (
  nats: NatsApi,
  place: BucketPlace,
  log: string,
  entry: ActorEntry,
  first: End
): Promise<End> => {
  const endAt = async (at: number): Promise<End | undefined> => {
    const keys = numbersFor(at).filter((n) => n > entry.head).map((n) => log + n)
    const ends = (await lastOfMany(nats, place.stream, keys, 0)).flatMap((stored): Array<End> => {
      const n = Number(stored.subject.slice(log.length))
      const end = { n: n + countOf(stored) - 1, seq: stored.seq }
      return isItem(entry, n, stored) && end.n >= at ? [end] : []
    })
    return ends[0]
  }
  const longer = ({ n }: End): number => n + Math.max(1, n - entry.head)
  let there = first
  let missing = longer(there)
  for (let end = await endAt(missing); end !== undefined; end = await endAt(missing)) {
    there = end
    missing = longer(there)
  }
  while (missing - there.n > 1) {
    const middle = (there.n + missing) >> 1
    const end = await endAt(middle)
    if (end === undefined) missing = middle
    else there = end
  }
  return there
}

/** The state record, then the end of the log, as they are at the call or later. */
export const loadEntry = async (
  nats: NatsApi,
  place: BucketPlace,
  of: Address
): Promise<ActorEntry> => {
  const { log, state } = actorKeys(place, of)
  const moment = await momentOf(nats, place.stream)
  const entry = entryOf(await moment.last(state))
  if (entry.seq === 0) return entry
  let { head, lastSeq } = entry
  let next = await moment.last(log + (head + 1))
  let isFirst = true
  // Items may be added meanwhile: what is returned as the end must be one and the same answer.
  while (next !== undefined && isItem(entry, head + 1, next)) {
    const end = { n: head + countOf(next), seq: next.seq }
    const found = isFirst ? await findEnd(nats, place, log, entry, end) : end
    isFirst = false
    head = found.n
    lastSeq = Math.max(lastSeq, found.seq)
    next = await moment.last(log + (head + 1))
  }
  return { ...entry, head, lastSeq, nextSeq: next?.seq ?? 0 }
}

/** Id of the commit that wrote a key last. */
export const commitOfKey = async (
  nats: NatsApi,
  place: BucketPlace,
  subject: string
): Promise<string | undefined> =>
  (await last(nats, place.stream, subject))?.header("Restante-Commit")
