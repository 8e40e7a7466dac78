/**
 * A listing that takes several reads of the log shows the mailbox as it was at one moment, even if
 * notifications are removed between them.
 */
import { Effect } from "effect"
import { afterAll, beforeAll, beforeEach, expect, it } from "vitest"
import { mixedPageReadsMax, pageReadItems } from "../../http/limits.ts"
import type { Service } from "../../http/pipeline/service.ts"
import { descriptions, type Mailboxes, owner, startMailboxes } from "./mailbox-harness.ts"

/** More than one read takes. */
const count = pageReadItems + 8

let service: Mailboxes
let mailboxes = 0
let href = ""
/** The URIs of the notifications, oldest first. */
let hrefs: Array<string> = []
/** What happens after each of the next reads of a log. */
let afterReads: Array<() => Promise<unknown>> = []

const interrupted = (one: Service): Service => ({
  ...one,
  system: {
    ...one.system,
    read: (...parameters) =>
      Effect.tap(one.system.read(...parameters), () => {
        const act = afterReads.shift()
        return act === undefined ? Effect.void : Effect.promise(act)
      })
  }
})

beforeAll(async () => {
  service = await startMailboxes(interrupted)
})

afterAll(() => service.close())

beforeEach(async () => {
  href = (await service.open(`mixed-${++mailboxes}`)).href
  hrefs = []
  afterReads = []
  for (let at = 0; at < count; at++) {
    hrefs.push((await service.deposit(href, `n${at}`)).header("location"))
  }
})

/** Removes a notification; the reads of that request are not interrupted. */
const remove = async (at: number): Promise<void> => {
  const left = afterReads.splice(0)
  const removed = await service.send("DELETE", hrefs.at(at) ?? "", { basic: owner })
  expect(removed.status).toBe(204)
  afterReads = left
}

const get = (accept: string) =>
  service.send("GET", `${href}?limit=1000`, { basic: owner, headers: { Accept: accept } })

const names = (from: number, to: number): ReadonlyArray<string> =>
  Array.from({ length: to - from }, (_, at) => `n${from + at}`)

it("shows nothing that was removed beside what was deposited after that", async () => {
  afterReads = [async () => {
    await remove(0)
    await service.deposit(href, "late")
  }]
  expect(descriptions(await get("application/xml"))).toEqual([...names(1, count), "late"])
})

it("of the newest shows nothing that was removed before what it leaves out", async () => {
  afterReads = [async () => {
    await remove(-1)
    await remove(0)
  }]
  const { text } = await get("application/atom+xml")
  const shown = [...text.matchAll(/>(n\d+)</g)].map(([, name = ""]) => name)
  expect(new Set(shown)).toEqual(new Set(names(1, count - 1)))
})

it("is answered while removals go on", async () => {
  let removals = 0
  afterReads = Array.from({ length: 4 * mixedPageReadsMax }, () => () => remove(removals++))
  const answer = await get("application/xml")
  expect(answer.status).toBe(200)
  expect(removals).toBeGreaterThanOrEqual(mixedPageReadsMax)
  // All that was never removed is there.
  expect(descriptions(answer)).toEqual(expect.arrayContaining([...names(removals, count)]))
})
