/** Content at an origin of its own, CONTENT_BASE_URL (protocol §7, Origin of content). */
import { randomInt } from "node:crypto"
import { request } from "node:http"
import { text } from "node:stream/consumers"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { childOf, childrenOf } from "../../http/formats/xml/index.ts"
import { openapiDocument, resourceTable } from "../../http/resource-table.ts"
import { yes } from "./bridge.ts"
import { editOf, locationOf, plain } from "./content-harness.ts"
import { Answered, type Harness, type Sending, startService } from "./harness.ts"
import { childText, itemOf, type Mailboxes, notification, owner,
  startMailboxes } from "./mailbox-harness.ts"
import { eventually } from "./receiver.ts"

const contentBaseUrl = "https://content.test:8443"

let service: Mailboxes
/** A service behind a proxy that it trusts. */
let behind: Harness
/** A service whose origin of content ends with a dot. */
let dotted: Harness

beforeAll(async () => {
  service = await startMailboxes(undefined, { contentBaseUrl })
  behind = await startService(resourceTable, { contentBaseUrl, trustedProxies: ["127.0.0.0/8"] })
  dotted = await startService(resourceTable, { contentBaseUrl: "https://content.test.:8443" })
})
afterAll(() => Promise.all([service, behind, dotted].map((one) => one.close())))

const publish = (body: string, options: Sending = {}): Promise<Answered> =>
  service.send("POST", "/content", plain(body, options))

/** A request to a node by a name of our own, which `fetch` would not send. */
const sendTo = (
  { nodes }: Harness,
  method: string,
  path: string,
  { accept, basic, body, headers, type = "application/xml" }: Sending
): Promise<Answered> =>
  new Promise((resolve, reject) => {
    const fields = {
      ...accept === undefined ? {} : { Accept: accept },
      ...basic === undefined
        ? {}
        : { Authorization: `Basic ${Buffer.from(basic).toString("base64")}` },
      ...body === undefined ? {} : { "Content-Type": type },
      ...headers
    }
    const node = nodes[randomInt(nodes.length)]
    const sent = request(`${node}${path}`, { method, headers: fields }, (response) => {
      const answered = Object.entries(response.headers).map((
        [name, value]
      ): [string, string] => [name, String(value)])
      text(response).then(
        (read) => resolve(new Answered(response.statusCode ?? 0, new Headers(answered), read)),
        reject
      )
    })
    sent.on("error", reject).end(body)
  })

/** A request to the origin of content, for a path or a URI of it. */
const atContent = (method: string, uri: string, options: Sending = {}): Promise<Answered> => {
  const headers = { ...options.headers, Host: "content.test:8443" }
  return sendTo(service, method, uri.replace(contentBaseUrl, ""), { ...options, headers })
}

const pathOf = (uri: string): string => new URL(uri).pathname

const redirected = (answer: Answered) => [answer.status, answer.header("location"), answer.text]

/** The URI of the item of a notification at this URI. */
const urlIn = async (uri: string): Promise<string> => {
  const { xml } = await service.send("GET", uri, { basic: owner })
  const one = xml.name === "notification" ? xml : childOf(xml, "notification")
  return childText(itemOf(one), "url")
}

const idPattern = /^https:\/\/content\.test:8443\/content\/[A-Za-z0-9_-]{22}$/

describe("published content", () => {
  it("has its URI at the origin of content, and its edit URI at that of the service", async () => {
    const published = await publish("hello")
    const href = locationOf(published)
    expect(href).toMatch(idPattern)
    expect(published.xml.attributes["href"]).toBe(href)
    expect(editOf(published)).toMatch(new RegExp(`^${service.base}${pathOf(href)}~`))
    const read = await atContent("GET", href)
    expect([read.status, read.text]).toEqual([200, "hello"])
    const part = await atContent("GET", href, { headers: { Range: "bytes=1-2" } })
    expect([part.status, part.text]).toEqual([206, "el"])
    const head = await atContent("HEAD", href)
    expect([head.status, head.header("accept-post")]).toEqual([200, expect.stringMatching(/xml/)])
  })

  it("redirects readers from the service's origin, and shows them nothing there", async () => {
    const published = await publish("<script>1</script>", { type: "text/html" })
    const href = locationOf(published)
    for (const method of ["GET", "HEAD"]) {
      for (const options of [{}, { basic: owner }, { accept: "text/html" }]) {
        const answer = await service.send(method, pathOf(href), options)
        expect(redirected(answer)).toEqual([307, href, ""])
      }
    }
    const edit = editOf(published)
    const secret = edit.slice(service.base.length)
    expect(redirected(await service.send("GET", `${edit}?x=1`)))
      .toEqual([307, `${contentBaseUrl}${secret}?x=1`, ""])
    // It says nothing about what is there.
    const nothing = await service.send("GET", "/content/aaaaaaaaaaaaaaaaaaaaaa")
    expect(nothing.status).toBe(307)
    expect((await atContent("GET", nothing.header("location"))).status).toBe(404)
  })

  it("is changed and removed at the origin of the service", async () => {
    const published = await publish("first")
    const [href, edit] = [locationOf(published), editOf(published)]
    for (const method of ["PUT", "DELETE"]) {
      const path = edit.slice(service.base.length)
      const refused = await atContent(method, path, method === "PUT" ? plain("second") : {})
      expect([refused.status, refused.header("allow")]).toEqual([405, "GET, HEAD, POST, OPTIONS"])
      expect(refused.child("detail")).toContain(`only serves content; use ${service.base}`)
    }
    expect((await service.send("PUT", edit, plain("second"))).status).toBe(204)
    expect((await atContent("GET", href)).text).toBe("second")
    expect((await service.send("DELETE", edit)).status).toBe(204)
    expect((await atContent("GET", href)).status).toBe(410)
  })

  it("is listed with both URIs, and removed by its owner and by an admin", async () => {
    const options = { basic: service.bob }
    const href = locationOf(await publish("listed", options))
    const listing = await service.send("GET", "/content", options)
    const [listed] = childrenOf(listing.xml, "content")
    const edit = service.base + pathOf(href)
    expect(listed?.attributes).toMatchObject({ href, edit })
    const page = await service.send("GET", "/content", { ...options, accept: "text/html" })
    expect(page.text).toContain(`href="${href}"`)
    expect(page.text).toContain(`action="${pathOf(href)}/removal"`)
    expect((await service.send("DELETE", edit)).status).toBe(401)
    expect((await service.send("DELETE", edit, options)).status).toBe(204)
    const other = locationOf(await publish("of a stranger"))
    expect((await service.send("DELETE", pathOf(other), { basic: owner })).status).toBe(204)
  })

  it("takes receipts at both, which the publisher reads at the service", async () => {
    const published = await publish("x")
    const href = locationOf(published)
    const receipt = { body: "<receipt status=\"retrieved\"/>" }
    const taken = await atContent("POST", href, receipt)
    const first = `${service.base}${pathOf(href)}/receipts/1`
    expect([taken.status, taken.header("location")]).toEqual([202, first])
    expect((await service.send("POST", pathOf(href), receipt)).status).toBe(202)
    const receipts = await service.send("GET", `${editOf(published)}/receipts`)
    expect(receipts.xml.attributes["href"]).toBe(href)
    expect(childrenOf(receipts.xml, "receipt")).toHaveLength(2)
    expect((await atContent("GET", `${pathOf(href)}/receipts`)).status).toBe(404)
  })

  it("keeps its message password", async () => {
    const password = "a-password-of-16-or-more"
    const headers = { "Message-Password": password }
    const href = locationOf(await publish("hidden", { headers }))
    const refused = await atContent("GET", href, { accept: "text/html" })
    expect([refused.status, refused.header("www-authenticate")])
      .toEqual([401, "Basic realm=\"message\""])
    expect((await atContent("GET", href, { headers })).text).toBe("hidden")
    expect((await atContent("GET", href, { basic: `reader:${password}` })).text).toBe("hidden")
  })
})

describe("the origin of content", () => {
  const requests: ReadonlyArray<readonly [method: string, path: string]> = [
    ["GET", "/"],
    ["GET", "/content"],
    ["POST", "/content"],
    ["GET", "/mailboxes"],
    ["GET", "/sign-in"],
    ["POST", "/sign-in"],
    ["GET", "/accounts"],
    ["POST", "/accounts"],
    ["GET", "/style.css"],
    ["GET", "/page.js"],
    ["GET", "/favicon.ico"],
    ["GET", "/metrics"],
    ["GET", "/livez"],
    ["GET", "/openapi.json"],
    ["POST", "/content/aaaaaaaaaaaaaaaaaaaaaa/removal"]
  ]

  it.each(requests)("does not answer %s %s, whoever asks", async (method, path) => {
    const accepts = ["application/xml", "text/html,*/*;q=0.8", "text/html, application/xml"]
    for (const accept of accepts) {
      const answer = await atContent(method, path, { basic: owner, accept })
      expect([answer.status, answer.headers.get("set-cookie")]).toEqual([404, null])
      expect(answer.text).toContain(`${contentBaseUrl} only serves content; use ${service.base}`)
      expect(answer.header("content-type")).not.toContain("html")
    }
  })

  it("knows no cookies, and has no page even for a browser", async () => {
    const signedIn = await service.send("POST", "/sign-in", {
      type: "application/x-www-form-urlencoded",
      headers: { "Sec-Fetch-Site": "same-origin" },
      body: new URLSearchParams({ account: "bob", token: service.bob.slice("bob:".length) })
        .toString()
    })
    const [cookie = ""] = signedIn.header("set-cookie").split(";")
    const headers = { Cookie: cookie, "Sec-Fetch-Site": "none" }
    const browser = { headers, accept: "text/html,*/*;q=0.8" }
    const listing = await service.send("GET", "/content", browser)
    expect([listing.status, listing.header("content-type")])
      .toEqual([200, "text/html; charset=utf-8"])
    // The owner reads its content without the password where it is known, by no cookie here.
    const password = { "Message-Password": "a-password-of-16-or-more" }
    const href = locationOf(await publish("x", { basic: service.bob, headers: password }))
    const refused = await atContent("GET", href, browser)
    expect([refused.status, refused.header("content-type"), refused.headers.get("set-cookie")])
      .toEqual([401, "text/plain; charset=utf-8", null])
    const gone = await atContent("GET", "/content/aaaaaaaaaaaaaaaaaaaaaa", browser)
    expect([gone.status, gone.header("content-type")])
      .toEqual([404, "text/plain; charset=utf-8"])
  })

  it.each([
    ["content.test", 404],
    ["CONTENT.test:1", 404],
    ["content.test.", 404],
    ["content.test.evil.example", 200],
    ["post.test", 200]
  ])("is known by the host name alone: %s", async (host, status) => {
    expect((await sendTo(service, "GET", "/", { headers: { Host: host } })).status).toBe(status)
  })

  it("may end with a dot, and is then not redirected to itself", async () => {
    for (const host of ["content.test.", "content.test"]) {
      expect((await sendTo(dotted, "GET", "/", { headers: { Host: host } })).status).toBe(404)
    }
  })

  it.each([
    ["proxy.test", "content.test", 404],
    ["proxy.test", "post.test, content.test", 404],
    ["proxy.test", "content.test, post.test", 200],
    ["content.test", "post.test", 404]
  ])("is known by the last X-Forwarded-Host of a trusted proxy: %s, %s", async (host, ...rest) => {
    const [forwarded, status] = rest
    const headers = { Host: host, "X-Forwarded-Host": forwarded }
    expect((await sendTo(behind, "GET", "/", { headers })).status).toBe(status)
    const untrusted = host === "content.test" ? 404 : 200
    expect((await sendTo(service, "GET", "/", { headers })).status).toBe(untrusted)
  })

  it("is not what a client names in X-Forwarded-Host at the service's own", async () => {
    const published = await behind.send("POST", "/content", plain("of a stranger"))
    const href = locationOf(published)
    const { host } = new URL(behind.base)
    for (const own of [host, `${new URL(behind.base).hostname}.`]) {
      const headers = { Host: own, "X-Forwarded-Host": "content.test" }
      const answer = await sendTo(behind, "GET", pathOf(href), { headers })
      expect(redirected(answer)).toEqual([307, href, ""])
    }
  })

  it("has no page for a request that is refused before it is routed", async () => {
    const headers = { Expect: "tea" }
    for (const accept of ["text/html,*/*;q=0.8", "text/html", "text/html, application/xml"]) {
      const answer = await atContent("GET", "/", { accept, headers })
      expect([answer.status, answer.header("content-type")])
        .toEqual([417, "text/plain; charset=utf-8"])
      expect(answer.text).toContain("the only expectation known is 100-continue")
    }
    const xml = await atContent("GET", "/", { headers })
    expect(xml.header("content-type")).toBe("application/problem+xml; charset=utf-8")
  })

  it("answers OPTIONS, and names its operations in /openapi.json", async () => {
    const href = locationOf(await publish("x"))
    const options = await atContent("OPTIONS", href)
    expect([options.status, options.header("allow")]).toEqual([204, "GET, HEAD, POST, OPTIONS"])
    const { json } = await service.send("GET", "/openapi.json", { accept: "application/json" })
    expect(json).toMatchObject({
      paths: {
        "/content/{content}": {
          get: { servers: [{ url: contentBaseUrl }] },
          head: { servers: [{ url: contentBaseUrl }] },
          post: { servers: [{ url: contentBaseUrl }, { url: service.base }] }
        }
      }
    })
    const unset = openapiDocument({ ...service.service.settings, contentBaseUrl: undefined })
    expect(JSON.stringify(unset["paths"])).not.toContain("\"servers\"")
  })
})

describe("content of notifications", () => {
  it("that came inlined is at the origin of content", async () => {
    const { href } = await service.open("inlined")
    const body = "<notification><item><description>d</description>" +
      "<content type=\"text/plain\">words</content></item></notification>"
    const location = (await service.send("POST", href, { body })).header("location")
    const url = await urlIn(location)
    expect(url).toMatch(idPattern)
    expect((await atContent("GET", url)).text).toBe("words")
    const feed = await service.send("GET", href, { basic: owner, accept: "application/atom+xml" })
    expect(feed.text).toContain(url)
    expect((await service.send("DELETE", pathOf(url), { basic: owner })).status).toBe(204)
    expect((await atContent("GET", url)).status).toBe(410)
  })

  it("is copied, and answered with receipts, without a request to that origin", async () => {
    const settings =
      "<fetch>eager</fetch><fetch-limit>1000</fetch-limit><receipts>received</receipts>"
    const { href } = await service.open("eager", settings)
    const published = await publish("own words")
    const url = locationOf(published)
    for (const uri of [url, service.base + pathOf(url)]) {
      const body = notification(uri, uri)
      const location = (await service.send("POST", href, { basic: owner, body }))
        .header("location")
      // Nothing resolves this name: a request would fail.
      const copy = await eventually(`a copy of ${uri}`, async () => {
        const { xml } = await service.send("GET", location, { basic: owner })
        return childOf(xml, "cached")?.attributes["href"]
      })
      expect(copy).toMatch(idPattern)
      expect((await atContent("GET", copy)).text).toBe("own words")
    }
    const listed = await eventually("a receipt of each", async () => {
      const { xml } = await service.send("GET", `${editOf(published)}/receipts`)
      const receipts = childrenOf(xml, "receipt")
      return receipts.length >= 2 ? receipts : undefined
    })
    expect(listed.map(({ attributes }) => attributes["status"])).toContain("received")
  })

  it("is read where the answer of a session refers to it", async () => {
    const href = locationOf(await publish("Sir Lancelot"))
    const session = await service.send("POST", "/sessions", { body: yes })
    const { pathname } = new URL(session.header("location"), service.base)
    const body = `<answer href="${href}"/>`
    const answered = await service.send("PUT", `${pathname}/name`, { body })
    expect([answered.status, answered.text]).toEqual([201, expect.stringContaining("/quest")])
  })
})

describe("the pages of a mailbox", () => {
  it("name a file and a picture at the origin of content, and load neither", async () => {
    const { href } = await service.open("named-files")
    for (const type of ["application/pdf", "image/png"]) {
      const item = `<item><description>A</description><content type="${type}">abcd</content></item>`
      const deposited = await service.send("POST", href, {
        body: `<notification>${item}</notification>`,
        type: "text/xml+rss"
      })
      const at = deposited.header("location")
      const page = await service.send("GET", at, { basic: owner, accept: "text/html" })
      const shown = page.text.replaceAll(/\s+/g, " ")
      expect(shown).toContain(`<b>A file</b> <span class="quiet">${type}, 4 B</span>`)
      expect(shown).toMatch(
        new RegExp(`<a href="${contentBaseUrl}/content/[\\w-]{22}">Download</a>`)
      )
      expect(shown).not.toContain("<img")
      expect(page.header("content-security-policy")).toContain("img-src 'self';")
      const list = await service.send("GET", href, { basic: owner, accept: "text/html" })
      expect(list.text).toContain(`${type}, 4 B`)
    }
  })
})
