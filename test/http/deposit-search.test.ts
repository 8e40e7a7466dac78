/** The search for a keyed deposit whose number is unknown, in a log without a store. */
import { Effect } from "effect"
import { describe, expect, it } from "vitest"
import { encodeItem, encodeRemoval } from "../../actors/mailbox/log-item.ts"
import { keyedSearchClockSkewMs, keyedSearchItemsMax, keyedSearchPage } from "../../http/limits.ts"
import { HttpError } from "../../http/pipeline/http-error.ts"
import { findDeposit } from "../../http/resources/mailboxes/deposit/deposit-search.ts"
import type { LogItem } from "../../runtime/index.ts"

const usedAtMs = 1_800_000_000_000
const sought = "sought".padEnd(22, "-")
const digest = "digest".padEnd(22, "-")

const deposited = (n: number, atMs: number, idRandom = `${n}`.padEnd(22, "x")): LogItem => ({
  n,
  value: encodeItem(atMs, idRandom, digest, "<item/>")
})

/** So many deposits, a second apart, of which this number is `n = at`. */
const logOf = (count: number, at: number, atMs: number): Array<LogItem> =>
  Array.from({ length: count }, (_, index) => deposited(index + 1, atMs + (index + 1 - at) * 1_000))

interface Searched {
  readonly found: number | string | undefined
  readonly reads: number
}

const search = async (log: ReadonlyArray<LogItem>): Promise<Searched> => {
  let reads = 0
  const head = log.at(-1)?.n ?? 0
  const read = (from: number, limit: number) =>
    Effect.sync(() => {
      reads++
      // Numbers without a gap are at their places.
      const items = log.length === head
        ? log.slice(from - 1, from - 1 + limit)
        : log.filter(({ n }) => n >= from).slice(0, limit)
      return items
    })
  const found = await Effect.runPromise(
    Effect.catch(
      findDeposit(read, {
        head,
        idRandom: sought,
        itemsMax: keyedSearchItemsMax,
        sinceMs: usedAtMs
      }),
      (failure) =>
        Effect.succeed(failure instanceof HttpError ? failure.problem.slug : failure._tag)
    )
  )
  return { found, reads }
}

describe("the search for a keyed deposit", () => {
  it("finds it however many others have come since", async () => {
    const at = 500
    const log = logOf(50_000, at, usedAtMs)
    log[at - 1] = deposited(at, usedAtMs, sought)
    const { found, reads } = await search(log)
    expect(found).toBe(at)
    expect(reads).toBeLessThan(50)
  })

  it("finds it among removed numbers and events of removals", async () => {
    const log = [
      deposited(3, usedAtMs - 2 * keyedSearchClockSkewMs),
      { n: 900, value: encodeRemoval(usedAtMs - 5, ["1-x"]) },
      deposited(70_000, usedAtMs + 5, sought),
      { n: 80_000, value: encodeRemoval(usedAtMs + 9, ["1-x"]) }
    ]
    expect((await search(log)).found).toBe(70_000)
  })

  it("finds it where the clock of its node was behind", async () => {
    const at = 500
    const log = logOf(1_000, at, usedAtMs - keyedSearchClockSkewMs + 1_000)
    log[at - 1] = deposited(at, usedAtMs - keyedSearchClockSkewMs + 1_000, sought)
    expect((await search(log)).found).toBe(at)
  })

  it("finds nothing where it was removed, without reading what is older", async () => {
    const at = keyedSearchItemsMax
    const log = logOf(at + 300, at, usedAtMs)
    log.splice(at - 1, 1)
    expect((await search([])).found).toBeUndefined()
    const { found, reads } = await search(log)
    expect(found).toBeUndefined()
    expect(reads).toBeLessThan(100)
  })

  it("is 503, and does not claim that it was removed, after too many others", async () => {
    const log = logOf(keyedSearchItemsMax + 2, 1, usedAtMs)
    const { found, reads } = await search(log)
    expect(found).toBe("overloaded")
    expect(reads).toBeLessThan(keyedSearchItemsMax / keyedSearchPage + 50)
  })
})
