/** Pages of large notifications: they end before they need much memory, and none is left out. */
import { Effect } from "effect"
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest"
import { childrenOf } from "../../http/formats/xml/index.ts"
import { pageCharsMax } from "../../http/limits.ts"
import type { Service } from "../../http/pipeline/service.ts"
import { type Mailboxes, owner, startMailboxes } from "./mailbox-harness.ts"

let service: Mailboxes
let href = ""
/** Characters of the largest read of the log. */
let largestChars = 0

const counting = (counted: Service): Service => ({
  ...counted,
  system: {
    ...counted.system,
    read: (...parameters) =>
      Effect.tap(counted.system.read(...parameters), (items) =>
        Effect.sync(() => {
          const chars = items.reduce((sum, { value }) => sum + value.length, 0)
          largestChars = Math.max(largestChars, chars)
        }))
  }
})

const count = 12
const names = Array.from({ length: count }, (_, n) => `large-${n}`)

/** Valid, and of elements that a reader does not know: about 200 kB. */
const largeNotification = (name: string): string =>
  `<notification><item><description>${name}</description><url>http://a.example/</url>` +
  `${`<x a="${"a".repeat(990)}"/>`.repeat(200)}</item></notification>`

beforeAll(async () => {
  service = await startMailboxes(counting)
  href = (await service.open("large")).href
  for (const name of names) {
    const answer = await service.send("POST", href, { body: largeNotification(name) })
    expect(answer.status).toBe(202)
  }
})

afterAll(() => service.close())

afterEach(() => {
  expect(largestChars).toBeLessThan(pageCharsMax + largeNotification("").length + 1_000)
})

const namesIn = (text: string): ReadonlyArray<string> => text.match(/large-\d+/g) ?? []

/** The pages from this URI on, by their links to the next one. */
const pagesFrom = async (first: string, accept: string): Promise<ReadonlyArray<string>> => {
  const pages: Array<string> = []
  for (let uri: string | undefined = first; uri !== undefined;) {
    const answer = await service.send("GET", uri, { basic: owner, headers: { Accept: accept } })
    expect(answer.status).toBe(200)
    pages.push(answer.text)
    uri = /<([^>]*)>; ?rel="next"/.exec(answer.headers.get("link") ?? "")?.[1]
  }
  return pages
}

describe("a mailbox of large notifications", () => {
  it.each(["application/xml", "application/json", "text/plain"])(
    "is listed as %s by pages that are not large",
    async (accept) => {
      const pages = await pagesFrom(href, accept)
      expect(pages.length).toBeGreaterThan(1)
      expect([...new Set(pages.flatMap(namesIn))]).toEqual(names)
    }
  )

  it.each(["application/atom+xml", "text/html"])("is listed as %s, too", async (accept) => {
    const pages = await pagesFrom(`${href}?read`, accept)
    expect(pages.length).toBeGreaterThan(1)
    expect(new Set(pages.flatMap(namesIn))).toEqual(new Set(names))
  })

  it("is searched by such pages", async () => {
    const pages = await pagesFrom(`${href}?q=large-1`, "application/atom+xml")
    expect(new Set(pages.flatMap(namesIn))).toEqual(new Set(["large-1", "large-10", "large-11"]))
  })

  it("has the largest alone on a page that asks for one", async () => {
    const answer = await service.send("GET", `${href}?limit=1`, { basic: owner })
    expect(childrenOf(answer.xml, "notification").length).toBe(1)
  })
})

describe("a mailbox of notifications with many elements", () => {
  it("has few on each page, as each element takes time to read", async () => {
    const opened = await service.open("many-elements")
    const count = 6
    for (let n = 0; n < count; n++) {
      const body =
        `<notification><item><description>large-${n}</description><url>http://a.example/</url>` +
        `${"<a/>".repeat(15_000)}</item></notification>`
      expect((await service.send("POST", opened.href, { body })).status).toBe(202)
    }
    for (const accept of ["text/plain", "text/html"]) {
      const first = accept === "text/html" ? `${opened.href}?read` : opened.href
      const pages = await pagesFrom(first, accept)
      expect(new Set(pages.flatMap(namesIn)).size).toBe(count)
      for (const page of pages) expect(new Set(namesIn(page)).size).toBeLessThanOrEqual(2)
    }
  })
})
