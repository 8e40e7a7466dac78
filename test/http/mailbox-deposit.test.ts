/** Depositing in mailboxes (A2), and one notification. */
import { Effect } from "effect"
import { afterAll, beforeAll, describe, expect, test } from "vitest"
import { childOf, childrenOf, textOf } from "../../http/formats/xml/index.ts"
import { childText, descriptions, itemOf, type Mailboxes, notification, owner,
  startMailboxes } from "./mailbox-harness.ts"

let service: Mailboxes

beforeAll(async () => {
  service = await startMailboxes()
})

afterAll(() => service.close())

describe("A2: depositing", () => {
  test("202 with Location and Link; the same document again has the first Location", async () => {
    const { href } = await service.open("inbox")
    const first = await service.deposit(href, "hello")
    expect([first.status, first.text]).toEqual([202, ""])
    expect(first.header("location")).toMatch(/\/mailboxes\/inbox\/notifications\/[\w-]+$/)
    expect(first.header("link")).toBe(
      `<${href}>; rel="mailbox", <${href}>; rel="http://www.w3.org/ns/ldp#inbox"`
    )
    const other = await service.deposit(href, "other")
    const repeated = await service.deposit(href, "hello")
    expect(repeated.status).toBe(202)
    expect(repeated.header("location")).toBe(first.header("location"))
    expect(other.header("location")).not.toBe(first.header("location"))
    const withCredentials = await service.send("POST", href, {
      basic: owner,
      body: notification("hello")
    })
    expect(withCredentials.header("location")).toBe(first.header("location"))
    const listing = await service.send("GET", href, { basic: owner })
    expect(descriptions(listing)).toEqual(["hello", "other"])
  })

  test("a form with priority, tags and a link, as the header fields of text", async () => {
    const { href } = await service.open("described-by-form")
    const post = (fields: Readonly<Record<string, string>>, accept = "application/xml") =>
      service.send("POST", href, {
        body: new URLSearchParams({ description: "d", url: "", content: "c", ...fields })
          .toString(),
        type: "application/x-www-form-urlencoded",
        accept
      })
    const click = "https://example.org/orders/7"
    expect((await post({ priority: "high", tags: " door, Küche ", click })).status).toBe(202)
    expect((await post({ priority: "", tags: " , ", click: "" })).status).toBe(202)
    const listed = childrenOf(
      (await service.send("GET", href, { basic: owner })).xml,
      "notification"
    )
    const fieldsOf = (at: number) =>
      ["priority", "tags", "click"].map((name) => {
        const field = childOf(itemOf(listed[at]), name)
        return field === undefined ? undefined : textOf(field)
      })
    expect(fieldsOf(0)).toEqual(["4", "door,Küche", click])
    expect(fieldsOf(1)).toEqual([undefined, undefined, undefined])
    const wrong = { priority: "7", tags: "x,".repeat(21), click: "ftp://example.org/" }
    for (const [name, value] of Object.entries(wrong)) {
      const page = await post({ [name]: value }, "text/html")
      expect(page.status, name).toBe(422)
      expect(page.text).toMatch(/<details open><summary>More: priority, tags, link<\/summary>/)
      expect(page.text).toMatch(
        new RegExp(`id="deposit-${name}-fault" class="fault">✗ “(?:Priority|Tags|Link)” `)
      )
    }
    const page = await service.send("GET", href, { accept: "text/html" })
    expect(page.text).toContain("<details><summary>More: priority, tags, link</summary>")
  })

  test("JSON, a form with a page for a browser, and other types", async () => {
    const { href } = await service.open("types")
    const json = await service.send("POST", href, {
      body: JSON.stringify({ item: { description: "j", url: "http://example.org/" } }),
      type: "application/json"
    })
    expect(json.status).toBe(202)
    const form = await service.send("POST", href, {
      body: "description=by+form&url=&content=line+1%0D%0Aline+2",
      type: "application/x-www-form-urlencoded",
      accept: "text/html,*/*;q=0.8"
    })
    expect(form.status).toBe(202)
    expect(form.header("location")).toContain("/notifications/")
    expect(form.text).toContain("is deposited")
    const listing = await service.send("GET", href, { basic: owner })
    expect(descriptions(listing)).toEqual(["j", "by form"])
    const item = itemOf(childrenOf(listing.xml, "notification")[1])
    const content = await service.send("GET", childText(item, "url"))
    expect([content.status, content.text]).toEqual([200, "line 1\nline 2"])
    expect(childOf(item, "content")).toBeUndefined()
    const markdown = await service.send("POST", href, { body: "hello", type: "text/markdown" })
    expect(markdown.status).toBe(415)
    expect(markdown.header("accept-post")).toContain("text/plain")
    expect(markdown.header("link")).toContain("rel=\"mailbox\"")
    const other = { type: "application/xml; charset=ISO-8859-1" }
    const refused = await service.send("POST", href, { ...other, body: "<notification/>" })
    expect([refused.status, refused.child("detail")])
      .toEqual([415, "the charset ISO-8859-1 is not supported: send UTF-8"])
  })

  test.each([
    { type: "text/plain", body: "hello", description: "hello" },
    { type: "text/plain; charset=UTF-8", body: "\r\n  é < &\nmore\n", description: "é < &" },
    { type: "text/plain", body: "a\u0000\u001b[1mb", description: "a  [1mb" },
    { type: "text/plain", body: "😀".repeat(201), description: "😀".repeat(200) },
    { type: "application/x-www-form-urlencoded", body: "hello", description: "hello" },
    {
      type: "application/x-www-form-urlencoded",
      body: "50% + a=b&c\nd",
      description: "50% + a=b&c"
    }
  ])("plain text, kept as it came: $type, $description", async ({ body, description, type }) => {
    const { href } = await service.open(`text-${type.length}-${body.length}`)
    const sent = await service.send("POST", href, { body, type })
    expect([sent.status, sent.text]).toEqual([202, ""])
    const again = await service.send("POST", href, { body, type })
    expect(again.header("location")).toBe(sent.header("location"))
    const listing = await service.send("GET", href, { basic: owner })
    expect(descriptions(listing)).toEqual([description])
    const [entry] = childrenOf(listing.xml, "notification")
    const content = await service.send("GET", childText(itemOf(entry), "url"))
    expect([content.status, content.text]).toEqual([200, body])
    const charset = type.startsWith("text/plain;") ? "UTF-8" : "utf-8"
    expect(content.header("content-type")).toBe(`text/plain; charset=${charset}`)
  })

  test("text with header fields that describe it, which belong to what is repeated", async () => {
    const { href } = await service.open("described")
    const send = (headers: Readonly<Record<string, string>>) =>
      service.send("POST", href, { body: "It is full.", type: "text/plain", headers })
    const headers = {
      Priority: "high",
      Tags: "disk, ,warning",
      Click: "https://disks.test/1?a=b&c"
    }
    const sent = await send(headers)
    expect(sent.status).toBe(202)
    const at = sent.header("location")
    expect((await send(headers)).header("location")).toBe(at)
    expect((await send({ ...headers, Priority: "5" })).header("location")).not.toBe(at)
    // As clients of ntfy write them.
    const others = { "X-Priority": "High", "X-Tags": headers.Tags, "X-Click": headers.Click }
    expect((await send(others)).header("location")).toBe(at)
    // What browsers send with every request, and not to the mailbox.
    const plain = (await send({})).header("location")
    for (const Priority of ["u=1, i", "u=0", "i", "i=?0, u=7"]) {
      expect((await send({ Priority })).header("location")).toBe(plain)
    }
    const item = itemOf((await service.send("GET", at, { basic: owner })).xml)
    const shown = ["priority", "tags", "click"].map((name) => childText(item, name))
    expect(shown)
      .toEqual(["4", "disk,warning", "https://disks.test/1?a=b&c"])
    const page = await service.send("GET", at, { basic: owner, accept: "text/html" })
    expect(page.text).toContain("<span class=\"badge wait\">! important</span>")
    expect(page.text).toContain("<span class=\"tag\">warning</span>")
    expect(page.text)
      .toContain("<a href=\"https://disks.test/1?a=b&amp;c\">open 1 at disks.test</a>")
  })

  test.each([
    { Priority: "6" },
    { Priority: "highest" },
    { Tags: Array.from({ length: 21 }, (_, at) => `t${at}`).join() },
    { Click: "javascript:alert(1)" },
    { Click: `http://a.test/${"a".repeat(2048)}` },
    { Tags: "a\u00fcb" }
  ])("text with a wrong header field: 422, and nothing is stored: %j", async (headers) => {
    const name = `wrong-${Object.keys(headers)[0]?.toLowerCase()}-${JSON.stringify(headers).length}`
    const { href } = await service.open(name)
    const given = Object.fromEntries(Object.entries(headers))
    const sent = await service.send("POST", href, {
      body: "text",
      type: "text/plain",
      headers: given
    })
    expect([sent.status, sent.child("detail")])
      .toEqual([422, expect.stringContaining(Object.keys(headers)[0] ?? "")])
    expect(descriptions(await service.send("GET", href, { basic: owner }))).toEqual([])
  })

  test("text that is none: 400, 413, 415, 422; nothing is stored", async () => {
    const { href } = await service.open("no-text")
    const send = async (body: string | Uint8Array, type = "text/plain") =>
      (await service.send("POST", href, { body, type })).status
    expect([await send(""), await send(" \n\u0000 \n")]).toEqual([422, 422])
    expect(await send("", "application/x-www-form-urlencoded")).toBe(422)
    expect(await send(new Uint8Array([0xff, 0x61]))).toBe(400)
    expect(await send("a", "text/plain; charset=iso-8859-1")).toBe(415)
    expect(await send("a".repeat(300_000))).toBe(413)
    // A form of a page with a broken field is no text.
    expect(await send("description=%zz", "application/x-www-form-urlencoded")).toBe(400)
    expect(descriptions(await service.send("GET", href, { basic: owner }))).toEqual([])
  })

  test("broken documents and rules: 400, 413, 422 naming the rule; nothing is stored", async () => {
    const { href } = await service.open("strict")
    const send = (body: string, type = "text/xml+rss") => service.send("POST", href, { body, type })
    expect((await send("<notification>")).status).toBe(400)
    expect((await send("")).status).toBe(400)
    expect((await send("<!DOCTYPE a><notification/>")).status).toBe(400)
    expect((await send("{", "application/json")).status).toBe(400)
    const noUrl = await send(
      "<notification><item><description>a</description></item></notification>"
    )
    expect([noUrl.status, noUrl.child("rule")]).toEqual([422, "url"])
    expect((await send("<other/>")).status).toBe(422)
    expect((await send("url=a", "application/x-www-form-urlencoded")).status).toBe(422)
    expect((await send(notification("a".repeat(300_000)))).status).toBe(413)
    const listing = await service.send("GET", href, { basic: owner })
    expect(descriptions(listing)).toEqual([])
  })

  test("elements that a browser would run: 422, in XML and in JSON", async () => {
    const { href } = await service.open("active")
    const xhtml = "http://www.w3.org/1999/xhtml"
    const xml = "<notification><item><description>d</description><url>u:1</url>" +
      `<h:script xmlns:h="${xhtml}">alert(1)</h:script></item></notification>`
    const script = { "@xmlns:h": xhtml, "h:script": "alert(1)" }
    const json = JSON.stringify({ item: { description: "d", url: "u:1", added: script } })
    for (const [type, body] of [["text/xml+rss", xml], ["application/json", json]] as const) {
      const refused = await service.send("POST", href, { body, type })
      expect([type, refused.status, refused.child("rule")]).toEqual([type, 422, "active-markup"])
    }
    expect(descriptions(await service.send("GET", href, { basic: owner }))).toEqual([])
  })

  test("inlined content is the mailbox owner's, who can remove it, as an admin can", async () => {
    const headers = { Slug: "inline-owned" }
    const opened = await service.send("POST", "/mailboxes", { basic: service.bob, headers })
    const href = opened.header("location")
    const body = "<notification><item><description>d</description>" +
      "<content type=\"text/plain\">words of a stranger</content></item></notification>"
    const deposited = async (more: string) => {
      const sent = await service.send("POST", href, { body: body.replace("d<", `${more}<`) })
      const { text } = await service.send("GET", sent.header("location"), { basic: service.bob })
      return /<url>([^<]+)<\/url>/.exec(text)?.[1] ?? ""
    }
    for (const [who, basic] of [["bob", service.bob], ["admin", owner]] as const) {
      const content = await deposited(`for ${who}`)
      expect((await service.send("GET", content)).text).toBe("words of a stranger")
      expect((await service.send("DELETE", content)).status).toBe(401)
      expect([who, (await service.send("DELETE", content, { basic })).status]).toEqual([who, 204])
      expect((await service.send("GET", content)).status).toBe(410)
    }
  })

  test("inlined content is published by the service; the repetition has the same", async () => {
    const { href } = await service.open("inline")
    const body = "<notification><item><description>d</description><url/>" +
      "<password>a-password-of-16-or-more</password>" +
      "<content type=\"text/plain\" encoding=\"base64\">aGVsbG8=</content></item></notification>"
    const first = await service.send("POST", href, { body })
    const second = await service.send("POST", href, { body })
    expect([first.status, second.header("location")]).toEqual([202, first.header("location")])
    const one = await service.send("GET", first.header("location"), { basic: owner })
    const url = childText(itemOf(one.xml), "url")
    expect((await service.send("GET", url)).status).toBe(401)
    const content = await service.send("GET", url, {
      headers: { "message-password": "a-password-of-16-or-more" }
    })
    expect([content.status, content.text]).toEqual([200, "hello"])
    const gone = await service.send("POST", "/mailboxes/no-such", { body })
    expect(gone.status).toBe(404)
  })

  test("what others add comes back from JSON as it was", async () => {
    const { href, shared } = await service.open("foreign")
    const body =
      "<notification xmlns:x=\"urn:x\"><item><description>d</description><url>u:1</url>" +
      "<x:y on=\"1\" xml:lang=\"en\"><toString><a b=\"c\"/></toString></x:y></item></notification>"
    expect((await service.send("POST", href, { body })).status).toBe(202)
    const listed = await service.send("GET", shared, { accept: "application/json" })
    const [notification] = Object(listed.json).notification
    const sent = await service.send("POST", href, {
      type: "application/json",
      body: JSON.stringify({ item: notification.item })
    })
    expect([sent.status, sent.text]).toEqual([202, ""])
    const { xml } = await service.send("GET", shared)
    const [first, second] = childrenOf(xml, "notification").map(({ children }) => children)
    expect(second).toEqual(first)
  })

  test("unknown elements are served unchanged", async () => {
    const { href } = await service.open("extras")
    const body =
      "<notification xmlns:x=\"urn:x\"><item><description>d</description><url>u:1</url>" +
      "<x:mood level=\"3\">fine</x:mood></item></notification>"
    const created = await service.send("POST", href, { body })
    const one = await service.send("GET", created.header("location"), { basic: owner })
    expect(one.text).toContain("<x:mood level=\"3\">fine</x:mood>")
  })

  test("for accounts only: 401 for others; Idempotency-Key; secret URIs are checked", async () => {
    const { href, shared } = await service.open("members", "<deposit>accounts</deposit>")
    const nobody = await service.deposit(href, "a")
    expect(nobody.status).toBe(401)
    expect(nobody.header("www-authenticate")).toContain("Basic")
    expect(nobody.header("link")).toContain("rel=\"mailbox\"")
    const keyed = () =>
      service.send("POST", href, {
        basic: service.bob,
        body: notification("a"),
        headers: { "idempotency-key": "k-1" }
      })
    const first = await keyed()
    expect(first.status).toBe(202)
    expect((await keyed()).header("location")).toBe(first.header("location"))
    const { href: free, shared: freeShared } = await service.open("free")
    expect((await service.deposit(freeShared, "a")).status).toBe(202)
    expect((await service.deposit(`${free}~wrong`, "b")).status).toBe(404)
    expect((await service.deposit(shared, "a")).status).toBe(401)
    expect((await service.deposit("/mailboxes/UPPER", "a")).status).toBe(404)
  })
})

describe("a document that grows when it is stored", () => {
  const item = (fields: object) => ({
    type: "application/json",
    body: JSON.stringify({ item: { description: "d", url: "urn:x", ...fields } })
  })
  const ampersands = (count: number, more = "") => item({ description: "&".repeat(count) + more })

  test("413 however often it comes, and the mailbox goes on", async () => {
    const { href } = await service.open("grown")
    for (let tries = 0; tries < 6; tries++) {
      const refused = await service.send("POST", href, ampersands(250_000, String(tries)))
      expect(refused.status).toBe(413)
      expect(refused.child("type")).toContain("/problems/document-too-large")
    }
    const fits = await service.send("POST", href, ampersands(100_000))
    expect(fits.status).toBe(202)
    const listing = await service.send("GET", href, { basic: owner })
    expect(descriptions(listing)).toEqual(["&".repeat(100_000)])
  })

  test("413 for each way to grow, and for each way to deposit", async () => {
    const { href, shared } = await service.open("growing")
    const xml = (description: string) => ({ body: notification(description) })
    const names = "x".repeat(60_000)
    const extras = "<a/>".repeat(10_000)
    const grown = [
      ampersands(250_000),
      xml(">".repeat(250_000)),
      xml(`<![CDATA[${"<".repeat(250_000)}]]>`),
      item({ description: "&".repeat(200_000), url: "", content: { "@type": "text/plain" } }),
      { body: `<notification xmlns:a="${names}">${extras}${notification("d").slice(14)}` }
    ]
    for (const sending of grown) {
      for (
        const [uri, more] of [[href, {}], [shared, {}], [href, { basic: service.bob }]] as const
      ) {
        expect((await service.send("POST", uri, { ...sending, ...more })).status).toBe(413)
      }
    }
    const listing = await service.send("GET", href, { basic: owner })
    expect(descriptions(listing)).toEqual([])
  })

  test("413 frees its Idempotency-Key for a smaller document", async () => {
    const { href } = await service.open("regrown")
    const headers = { "idempotency-key": "the-key-of-a-document-that-grows" }
    const refused = await service.send("POST", href, { ...ampersands(250_000), headers })
    expect(refused.status).toBe(413)
    const smaller = await service.send("POST", href, { ...ampersands(1), headers })
    expect(smaller.status).toBe(202)
  })
})

describe("one notification", () => {
  test("200 with href and received; DELETE 204; then 410; unknown 404", async () => {
    const { href } = await service.open("single")
    const location = (await service.deposit(href, "it")).header("location")
    expect((await service.send("GET", location)).status).toBe(401)
    const answer = await service.send("GET", location, { basic: owner })
    expect(answer.status).toBe(200)
    expect(answer.xml.name).toBe("notification")
    expect(answer.xml.attributes["href"]).toBe(location)
    expect(answer.xml.attributes["received"]).toMatch(/Z$/)
    expect(answer.header("link")).toContain("rel=\"mailbox\"")
    const rss = await service.send("GET", location, { basic: owner, accept: "text/xml+rss" })
    expect(rss.header("content-type")).toContain("text/xml+rss")
    const page = await service.send("GET", location, { basic: owner, accept: "text/html" })
    expect(page.text).toContain("Read the message")
    const wrong = location.replace(/.$/, (last) => last === "A" ? "Q" : "A")
    expect((await service.send("GET", wrong, { basic: owner })).status).toBe(404)
    const unknown = `${href}/notifications/zz-${"A".repeat(22)}`
    expect((await service.send("GET", unknown, { basic: owner })).status).toBe(404)
    expect((await service.send("GET", `${href}/notifications/x`, { basic: owner })).status).toBe(
      404
    )
    const stale = { "if-match": "\"stale\"" }
    const refused = await service.send("DELETE", location, { basic: owner, headers: stale })
    expect(refused.status).toBe(412)
    expect((await service.send("DELETE", location)).status).toBe(401)
    const headers = { "if-match": answer.etag }
    expect((await service.send("DELETE", location, { basic: owner, headers })).status).toBe(204)
    expect((await service.send("GET", location, { basic: owner })).status).toBe(410)
    expect((await service.send("DELETE", location, { basic: owner })).status).toBe(410)
    const put = await service.send("PUT", location, { basic: owner, body: "<a/>" })
    expect([put.status, put.header("allow")]).toEqual([405, "GET, HEAD, POST, DELETE, OPTIONS"])
  })

  test("retention begins with retrieval by GET, not by HEAD", async () => {
    const { href } = await service.open("brief", "<retention>PT0S</retention>")
    const location = (await service.deposit(href, "soon gone")).header("location")
    await service.send("HEAD", href, { basic: owner })
    await new Promise((resolve) => setTimeout(resolve, 200))
    expect(descriptions(await service.send("GET", href, { basic: owner }))).toEqual(["soon gone"])
    await expect.poll(
      async () => (await service.send("GET", location, { basic: owner })).status,
      { timeout: 5000 }
    ).toBe(410)
  })

  test("what a browser gets for another site or a part of a page is not retrieved", async () => {
    const { href, shared } = await service.open("embedded", "<retention>PT0S</retention>")
    const kept = (await service.deposit(href, "kept")).header("location")
    const read = (await service.deposit(href, "read")).header("location")
    const link = { "Sec-Fetch-Site": "cross-site", "Sec-Fetch-Dest": "document" }
    const foreign: ReadonlyArray<Record<string, string>> = [
      link,
      { "Sec-Fetch-Site": "same-site", "Sec-Fetch-Dest": "empty" },
      { Origin: "https://evil.example" },
      ...["image", "script", "style", "embed", "object", "iframe"].map((part) => ({
        "Sec-Fetch-Site": "same-origin",
        "Sec-Fetch-Dest": part
      }))
    ]
    for (const headers of foreign) {
      for (const uri of [href, shared, kept]) {
        expect((await service.send("GET", uri, { basic: owner, headers })).status).toBe(200)
      }
    }
    const navigation = { "Sec-Fetch-Site": "same-origin", "Sec-Fetch-Dest": "document" }
    await service.send("GET", read, { basic: owner, headers: navigation })
    // The mailbox has decided about all earlier requests when this one has its effect.
    await expect.poll(
      async () => (await service.send("GET", read, { basic: owner, headers: link })).status,
      { timeout: 60_000 }
    ).toBe(410)
    expect((await service.send("GET", kept, { basic: owner, headers: link })).status)
      .toBe(200)
  })
})

test("a document is stored again if the removal of its first copy is forgotten", async () => {
  const forgetful = await startMailboxes((one) => ({
    ...one,
    system: {
      ...one.system,
      // The mailbox has the first item in its window, and the log does not have it.
      read: (to, from, limit) =>
        Effect.map(one.system.read(to, from, limit), (items) => items.filter(({ n }) => n !== 1))
    }
  }))
  try {
    const { href } = await forgetful.open("forgetful")
    expect((await forgetful.deposit(href, "again")).header("location")).toMatch(/\/1-[^/]+$/)
    const second = await forgetful.deposit(href, "again")
    expect(second.status).toBe(202)
    expect(second.header("location")).toMatch(/\/2-[^/]+$/)
    // From now on this one is repeated.
    expect((await forgetful.deposit(href, "again")).header("location"))
      .toBe(second.header("location"))
  } finally {
    await forgetful.close()
  }
})
