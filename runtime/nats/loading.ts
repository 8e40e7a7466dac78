/** Reading one actor from the leader of its stream. */
import type { Address } from "../address.ts"
import type { NatsApi } from "./connection.ts"
import { actorKeys, type Place } from "./keys.ts"
import { last } from "./reader.ts"
import { type Entry, entryOf, isItem } from "./record.ts"
import type { Stored } from "./wire.ts"

/**
 * The state record, then the end of the log. Items above the recorded head are without gaps, as
 * whatever leaves a gap writes the record; so it is enough to look at ever longer steps, and
 * then to halve.
 */
export const loadEntry = async (nats: NatsApi, place: Place, of: Address): Promise<Entry> => {
  const keys = actorKeys(place, of)
  const entry = entryOf(await last(nats, place.stream, keys.state))
  if (entry.seq === 0) return entry
  const item = (n: number) => last(nats, place.stream, keys.log + n)
  const counts = (n: number, stored: Stored | undefined): boolean =>
    stored !== undefined && isItem(entry, n, stored)
  let { head } = entry
  let next = await item(head + 1)
  let lastSeq = entry.lastSeq
  if (counts(head + 1, next)) {
    let there = 1
    let missing = 2
    while (counts(head + missing, await item(head + missing))) {
      there = missing
      missing *= 2
    }
    while (missing - there > 1) {
      const middle = (there + missing) >> 1
      if (counts(head + middle, await item(head + middle))) there = middle
      else missing = middle
    }
    head += there
    next = await item(head)
    // Items may be added meanwhile: what is returned as the end must be one and the same answer.
    while (counts(head, next)) {
      lastSeq = Math.max(lastSeq, next?.seq ?? 0)
      next = await item(++head)
    }
    head--
  }
  return { ...entry, head, lastSeq, nextSeq: next?.seq ?? 0 }
}

/** Id of the commit that wrote a key last. */
export const commitOfKey = async (
  nats: NatsApi,
  place: Place,
  subject: string
): Promise<string | undefined> =>
  (await last(nats, place.stream, subject))?.header("Restante-Commit")
