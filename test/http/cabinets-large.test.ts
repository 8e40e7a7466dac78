/** Pages of a cabinet with large notifications: they are not large, and none is left out. */
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { pageCharsMax } from "../../http/limits.ts"
import { cabinetOf, type Cabinets, nextOf, nextReceiptTime, owner,
  startCabinets } from "./cabinets-harness.ts"

let service: Cabinets
let href = ""
let queried = ""
let small = ""
const count = 20
const names = Array.from({ length: count }, (_, n) => `large-${n}`)

/** Valid, and of elements that a reader does not know; every third is small, others have 200 kB. */
const notificationNamed = (name: string, n: number): string =>
  `<notification><item><description>${name}</description><url>http://a.example/</url>` +
  `${`<x a="${"a".repeat(990)}"/>`.repeat(n % 3 === 0 ? 1 : 200)}</item></notification>`

beforeAll(async () => {
  service = await startCabinets()
  const mailboxes = [await service.open("large-a"), await service.open("large-b")]
  for (const [n, name] of names.entries()) {
    const to = n % 2 === 0 ? "large-a" : "large-b"
    const answer = await service.send("POST", `/mailboxes/${to}`, {
      body: notificationNamed(name, n)
    })
    expect(answer.status).toBe(202)
    await nextReceiptTime()
  }
  href = await service.make(mailboxes)
  small = await service.make([await service.open("small")])
  await service.deposit("small", "one")
  queried = await service.make(mailboxes, "<query contains=\"LARGE-1\"/>")
})

afterAll(() => service.close())

const namesIn = (text: string): ReadonlyArray<string> => [
  ...new Set(text.match(/large-\d+/g) ?? [])
]

/** The pages from this URI on, by their links to the next one. */
const pagesFrom = async (first: string, accept: string): Promise<ReadonlyArray<string>> => {
  const pages: Array<string> = []
  for (let uri: string | undefined = first; uri !== undefined;) {
    const answer = await service.send("GET", uri, { basic: owner, accept })
    expect(answer.status).toBe(200)
    pages.push(answer.text)
    uri = nextOf(answer)
  }
  return pages
}

describe("a cabinet of large notifications", () => {
  it.each([
    "application/xml",
    "application/json",
    "text/plain",
    "text/html",
    "application/atom+xml",
    "application/rss+xml"
  ])("is listed as %s by pages that are not large", async (accept) => {
    const pages = await pagesFrom(href, accept)
    expect(pages.length).toBeGreaterThan(1)
    // The addresses in a page, and its layout, are more than the notifications.
    for (const page of pages) expect(page.length).toBeLessThan(1.5 * pageCharsMax)
    // Each once, in the order of receipt.
    expect(pages.flatMap(namesIn)).toEqual(names)
  })

  it("has such pages of what its query finds", async () => {
    const pages = await pagesFrom(queried, "application/json")
    expect(pages.length).toBeGreaterThan(1)
    for (const page of pages) expect(page.length).toBeLessThan(1.5 * pageCharsMax)
    expect(pages.flatMap(namesIn)).toEqual(names.filter((name) => name.startsWith("large-1")))
  })

  it("is changed with the entity tag of its first page", async () => {
    const { etag } = await service.send("GET", href, { basic: owner, accept: "application/json" })
    const body = cabinetOf(["/mailboxes/large-a", "/mailboxes/large-b"])
    const put = { basic: owner, body, headers: { "If-Match": etag } }
    expect((await service.send("PUT", href, put)).status).toBe(200)
  })
})

describe("a cabinet", () => {
  it.each([
    "application/xml",
    "text/xml",
    "application/json",
    "text/plain",
    "text/html",
    "application/atom+xml",
    "application/rss+xml"
  ])("is changed with the entity tag of %s, or any", async (accept) => {
    const body = cabinetOf(["/mailboxes/small"])
    const put = async (headers: Record<string, string>) =>
      (await service.send("PUT", small, { basic: owner, body, headers })).status
    const { etag } = await service.send("GET", small, { basic: owner, accept })
    expect(await put({ "If-None-Match": etag })).toBe(412)
    expect(await put({ "If-Match": `"x", ${etag}` })).toBe(200)
    expect(await put({ "If-Match": "*" })).toBe(200)
    expect(await put({ "If-Match": `"${"x".repeat(22)}"` })).toBe(412)
    expect(await put({ "If-Match": "\"x\"" })).toBe(412)
    expect(await put({ "If-None-Match": "\"x\"" })).toBe(200)
  })
})
