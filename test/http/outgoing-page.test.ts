/** How the pages of sent notifications name them and their recipients. */
import { Effect } from "effect"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { address } from "../../runtime/index.ts"
import { admin, outgoing, type OutgoingHarness, type Receiver, startOutgoing,
  startReceiver } from "./outgoing-harness.ts"

let service: OutgoingHarness
let receiver: Receiver
let basic = ""
let href = ""
let own = ""
let long = ""

const about = "The <gas> meter"

beforeAll(async () => {
  service = await startOutgoing()
  receiver = await startReceiver()
  basic = await service.account("sender")
  const body = "<mailbox><name>hall</name></mailbox>"
  expect((await service.send("POST", "/mailboxes", { basic: admin, body })).status).toBe(201)
  own = `${service.base}/mailboxes/hall`
  long = `${receiver.base}/410/${"a-long-path/".repeat(8)}`
  const document = outgoing([own, long], "The &lt;gas&gt; meter")
  href = (await service.post(basic, [], { body: document })).header("location")
  await service.until(href, basic, "failed")
})
afterAll(async () => {
  await receiver.close()
  await service.close()
})

const read = (path: string, accept = "text/html") => service.send("GET", path, { basic, accept })
const escaped = about.replaceAll("<", "&lt;").replaceAll(">", "&gt;")

/** The texts of the page, without markup and attributes. */
const textsOf = (page: string) => page.replaceAll(/<[^>]*>/g, "\n")

describe("the page of a sent notification and that of its attempts", () => {
  it.each(["", "/attempts"])("%s have its description as their heading", async (path) => {
    const { text } = await read(href + path)
    expect(/<h1>(?:Attempts: )?(.*)<\/h1>/.exec(text)?.[1]).toBe(escaped)
  })

  it.each(["", "/attempts"])("%s name recipients, and show no long URI", async (path) => {
    const { text } = await read(href + path)
    expect(text).toContain(`<a href="${own}" title="${own}">hall</a>`)
    const shown = new RegExp(`<a href="${long}" title="${long}">(.*?)</a>`).exec(text)?.[1]
    expect(shown).toMatch(/^127\.0\.0\.1:\d+\/410\/.*….*a-long-path\/$/)
    expect(shown?.length).toBe(40)
    expect(textsOf(text)).not.toContain("http://")
  })

  it("offer to copy the whole URI of a recipient", async () => {
    const { text } = await read(href)
    expect(text).toContain(`data-copy="address of hall" data-text="${own}"`)
  })

  it("show the description of the last replacement", async () => {
    const first = (await service.post(basic, [long])).header("location")
    await service.until(first, basic, "failed")
    const body = "<notification><item><description>Second</description>" +
      "<url>http://a.test/</url></item></notification>"
    const replaced = await service.send("POST", `${first}/replacement`, { basic, body })
    expect(replaced.status).toBe(202)
    expect((await read(first)).text).toContain("<h1>Second</h1>")
  })

  it.each(["", " \n ", "\u200b"])("say what it is, for a blank description %j", async (blank) => {
    const body = outgoing([own], blank)
    const path = (await service.post(basic, [], { body })).header("location")
    expect((await read(path)).text).toContain("<h1>An outgoing notification</h1>")
    const { text } = await read("/outgoing/sender")
    expect(text).toContain(`<a href="${new URL(path).pathname}" title="${own}">to hall</a>`)
  })

  it("read the description from the document, where an earlier version has queued it", async () => {
    const id = "queued-by-an-earlier-version"
    await Effect.runPromise(service.service.system.ask(address("notification", id), {
      _tag: "Create",
      requestId: id,
      account: "sender",
      listingKey: `sender/${id}`,
      traceId: "0".repeat(32),
      document: outgoing([], "Old &amp; known"),
      to: [long]
    }))
    const path = `/outgoing/sender/${id}`
    await service.until(path, basic, "failed")
    const page = await read(path)
    expect(page.text).toContain("<h1>Old &amp; known</h1>")
    expect((await read(`${path}/attempts`)).text).toContain("<h1>Attempts: Old &amp; known</h1>")
    const tagged = { "if-match": page.header("etag") }
    expect((await service.send("DELETE", path, { basic, headers: tagged })).status).toBe(204)
  })

  it("keep the description after a withdrawal", async () => {
    const first = (await service.post(basic, [long])).header("location")
    const { text: before } = await read(first)
    const withdrawn = await service.send("POST", `${first}/withdrawal`, { basic })
    expect(withdrawn.status).toBe(202)
    const heading = /<h1>.*<\/h1>/
    expect(heading.exec((await read(first)).text)?.[0]).toBe(heading.exec(before)?.[0])
  })

  it("show the beginning of a long description, without half of a character", async () => {
    const description = "\u{1F431}".repeat(150)
    const body = outgoing([long], `x${description}`)
    const path = (await service.post(basic, [], { body })).header("location")
    const heading = /<h1>(.*)<\/h1>/.exec((await read(path)).text)?.[1]
    expect(heading).toBe(`x${"\u{1F431}".repeat(99)}`)
  })
})

it("the list has what each is about, and its first recipient", async () => {
  const { text } = await read("/outgoing/sender")
  expect(text).toContain(`${escaped}</a>`)
  expect(textsOf(text)).toContain(" · to hall and one other")
  expect(textsOf(text)).not.toContain(own)
})

it("an empty outgoing mailbox leads to the recipes", async () => {
  const empty = await service.account("silent")
  const { text } = await service.send("GET", "/outgoing/silent", {
    basic: empty,
    accept: "text/html"
  })
  const [, advice = ""] = /<p class="empty">(.*?)<\/p>/s.exec(text) ?? []
  expect(advice).toContain("<a href=\"/docs/how-to/recipes\">")
})
