/** Every GET resource in every representation, and the rules for all of them (protocol §0). */
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { childOf, parseText } from "../../http/formats/xml/index.ts"
import { resourceTable } from "../../http/resource-table.ts"
import { adminToken, type Answered, type Harness, startService } from "./harness.ts"
import { eventually } from "./receiver.ts"

const basic = `admin:${adminToken}`
let service: Harness

const send: Harness["send"] = (...request) => service.send(...request)

const notification = "<notification><item><description>d</description><url>http://example.org/m" +
  "</url></item></notification>"

/** Paths by their content; `beforeAll` fills it. */
const paths: Record<string, string> = {
  home: "/",
  problems: "/problems",
  problem: "/problems/not-found",
  "cross bridge": "/cross_bridge",
  sessions: "/sessions",
  "name question": "/questions/name_question",
  "quest question": "/questions/quest_question?name=Robin",
  "hard question": "/questions/hard_question?name=Robin&quest=Grail",
  "right answer": "/questions/hard_question?name=Robin&quest=Grail&air_speed=Assur",
  mailboxes: "/mailboxes",
  mailbox: "/mailboxes/matrix",
  accounts: "/accounts",
  account: "/accounts/admin",
  blocks: "/blocks",
  "blocks of a mailbox": "/mailboxes/matrix/blocks",
  reports: "/reports",
  limits: "",
  audit: "/audit?limit=2",
  "audit chain": "/audit/chain?limit=2",
  session: "",
  answer: "",
  cabinets: "/cabinets",
  cabinet: "",
  "outgoing mailbox": "/outgoing/admin",
  "outgoing notification": "",
  registrations: "/mailboxes/matrix/registrations",
  registration: "",
  "shared mailbox": "",
  notification: "",
  receipts: "",
  quotes: "/quotes",
  quote: "/quotes/MATRIX",
  "quote by its name": "/quotes?quotename=MATRIX",
  customers: "/customers?agemin=21&return=name+age",
  customer: "/customers/matrix",
  queries: "/queries",
  query: "",
  "customers by a query": "",
  load: ""
}

beforeAll(async () => {
  service = await startService(resourceTable)
  // Each node shows what it has counted itself.
  paths["limits"] = `${service.nodes[0] ?? ""}/limits`
  const opened = await send("POST", "/mailboxes", { basic, headers: { Slug: "matrix" } })
  paths["shared mailbox"] = childOf(opened.xml, "shared")?.attributes["href"] ?? ""
  const deposited = await send("POST", "/mailboxes/matrix", { body: notification })
  paths["notification"] = deposited.header("location")
  const cabinet = "<cabinet><mailbox href=\"/mailboxes/matrix\"/></cabinet>"
  const cabinetCreated = await send("POST", "/cabinets", { basic, body: cabinet })
  paths["cabinet"] = cabinetCreated.header("location")
  const to = `<to>${service.base}/mailboxes/matrix</to>`
  const body = notification.replace("<item>", `${to}<item>`)
  const queued = await send("POST", "/outgoing/admin", { basic, body })
  paths["outgoing notification"] = queued.header("location")
  // Handed over, so that it stays as it is.
  await eventually("it is sent", async () => {
    const shown = await send("GET", paths["outgoing notification"] ?? "", { basic })
    return shown.header("notification-status").startsWith("sent") ? true : undefined
  })
  const registered = await send("POST", "/mailboxes/matrix/registrations", {
    basic,
    body: "<registration><callback>http://192.0.2.1/</callback></registration>"
  })
  paths["registration"] = registered.header("location")
  await eventually("it is refused", async () => {
    const shown = await send("GET", paths["registration"] ?? "", { basic })
    return shown.text.includes("problem") ? true : undefined
  })
  const quote = "<quote><price currency=\"USD\">1.50</price></quote>"
  await send("PUT", "/quotes/MATRIX", { basic, body: quote })
  const customer = "<customer id=\"matrix\"><name>Neo</name><age>37</age></customer>"
  await send("PUT", "/customers/matrix", { basic, body: customer })
  const loaded = await send("PUT", "/customers", {
    basic,
    body: `<customers>${customer}</customers>`
  })
  paths["load"] = loaded.header("location")
  const queryDocument =
    "<query on=\"customers\"><where field=\"age\" op=\"ge\" value=\"21\"/></query>"
  const created = await send("POST", "/queries", { basic, body: queryDocument })
  paths["query"] = created.header("location")
  paths["customers by a query"] = `/customers?query=${encodeURIComponent(paths["query"])}`
  const begun = await send("POST", "/sessions", { body: "<answer continue=\"true\">yes</answer>" })
  paths["session"] = begun.header("location")
  const put = await send("PUT", `${paths["session"]}/name`, { body: "<answer>Arthur</answer>" })
  paths["answer"] = put.header("location")
  const published = await send("POST", "/content", { type: "text/plain", body: "x" })
  const edit = /<([^>]+)>; rel="edit"/.exec(published.header("link"))?.[1] ?? ""
  paths["receipts"] = `${edit}/receipts`
})
afterAll(() => service.close())

const browser =
  "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,*/*;q=0.8"

/** Accept fields, and the type that each must get. */
const negotiations: ReadonlyArray<readonly [accept: string | undefined, type: string]> = [
  [undefined, "application/xml; charset=utf-8"],
  ["*/*", "application/xml; charset=utf-8"],
  ["application/xml", "application/xml; charset=utf-8"],
  ["application/*", "application/xml; charset=utf-8"],
  ["text/xml", "text/xml; charset=utf-8"],
  ["text/html", "text/html; charset=utf-8"],
  [browser, "text/html; charset=utf-8"],
  ["application/json", "application/json"],
  ["text/plain", "text/plain; charset=utf-8"],
  ["application/json;q=0.5, text/plain;q=0.6", "text/plain; charset=utf-8"],
  ["application/xml;q=0, */*", "text/html; charset=utf-8"],
  ["image/png, application/json;q=0.1", "application/json"],
  ["text/*;q=0.3, application/xml;q=0.2", "text/html; charset=utf-8"]
]

/** The links of an answer with a relation. */
const linksOf = (answer: Answered, rel: string) =>
  [...answer.header("link").matchAll(/<([^>]*)>; rel="([^"]*)"(?:; type="([^"]*)")?/g)]
    .filter(([, , found]) => found === rel)
    .map(([, href = "", , type]) => ({ href, type }))

/** A URI with one spelling of its query. */
const canonical = (uri: string): string => {
  const url = new URL(uri)
  return `${url.origin}${url.pathname}?${new URLSearchParams(url.search)}`
}

const isHealthy = (type: string, text: string): boolean => {
  if (type.includes("xml")) return parseText(text).ok
  if (type === "application/json") return typeof JSON.parse(text) === "object"
  return type.startsWith("text/html")
    ? /^<!DOCTYPE html>[\s\S]*<\/html>\s*$/.test(text)
    : text !== ""
}

describe.each(Object.keys(paths))("%s", (name) => {
  const get = (options: Parameters<Harness["send"]>[2] = {}, method = "GET") =>
    send(method, paths[name] ?? "", { basic, ...options })

  it.each(negotiations)("Accept: %s gets %s", async (accept, type) => {
    // fetch adds `Accept: */*`, which is the same as none.
    const answer = await get(accept === undefined ? {} : { accept })
    expect([answer.status, answer.header("content-type")]).toEqual([200, type])
    expect(isHealthy(type, answer.text)).toBe(true)
    expect(answer.header("vary")).toMatch(/\bAccept\b/)
    expect(answer.header("x-content-type-options")).toBe("nosniff")
    expect(answer.header("referrer-policy")).toBe("no-referrer")
    expect(answer.etag).toMatch(/^"[^"]+"$/)
    if (type.startsWith("text/html")) {
      expect(answer.header("content-security-policy")).toContain("default-src 'none'")
    }
  })

  it("is 406 when nothing is acceptable, and lists the available types", async () => {
    const refused = await get({ accept: "image/png" })
    expect(refused.status).toBe(406)
    expect(refused.header("content-type")).toContain("application/problem+xml")
    expect(refused.text).toContain("application/json")
    expect((await get({ accept: "*/*;q=0" })).status).toBe(406)
  })

  it("answers HEAD like GET, and conditions by its ETag", async () => {
    for (const accept of ["application/xml", "application/json", "text/html"]) {
      const answer = await get({ accept })
      const head = await get({ accept }, "HEAD")
      expect([head.status, head.text, head.etag]).toEqual([200, "", answer.etag])
      expect(head.header("content-length")).toBe(String(Buffer.byteLength(answer.text)))
      const same = await get({ accept, headers: { "If-None-Match": `"x", ${answer.etag}` } })
      expect([same.status, same.text]).toEqual([304, ""])
      expect((await get({ accept, headers: { "If-None-Match": "\"x\"" } })).status).toBe(200)
      expect((await get({ accept, headers: { "If-Match": "\"x\"" } })).status).toBe(412)
    }
    const xml = await get({ accept: "application/xml" })
    expect((await get({ accept: "application/json" })).etag).not.toBe(xml.etag)
  })

  it("has a URI for each format, which Accept does not change", async () => {
    const target = paths[name] ?? ""
    const { origin, pathname, search } = new URL(target, service.base)
    const path = `${service.base}${pathname}${search}`
    // At the node that is asked: URIs begin with the base of all nodes.
    const atNode = (href: string) => href.replace(service.base, origin)
    const uriOf = (format: string) => `${path}${path.includes("?") ? "&" : "?"}format=${format}`
    const plain = await get()
    const othersOf = (answer: Answered) =>
      linksOf(answer, "alternate").filter(({ type }) => type !== undefined)
    const offered = othersOf(plain)
    const formats = offered.map(({ href }) => /[?&]format=(\w+)$/.exec(href)?.[1] ?? href)
    expect(formats).toEqual(expect.arrayContaining(["xml", "html", "json", "text"]))
    expect(offered.map(({ href }) => canonical(href)))
      .toEqual(formats.map((format) => canonical(uriOf(format))))
    expect(linksOf(plain, "self").map(({ href }) => canonical(href))).toEqual([canonical(path)])
    expect(plain.headers.has("content-location")).toBe(false)
    // Without an Accept field rel=self gets the representation that names it.
    for (const { href, type } of offered.filter((one) => one.type !== "application/xml")) {
      const negotiated = await get({ accept: type ?? "" })
      expect(linksOf(negotiated, "self")).toEqual([{ href, type }])
      expect(negotiated.header("content-location")).toBe(href)
      expect(othersOf(negotiated)).toEqual(offered.filter((one) => one.href !== href))
    }
    const tags = [(await get({ accept: "text/xml" })).etag]
    for (const { href, type } of offered) {
      const answer = await send("GET", atNode(href), { basic, accept: "image/png" })
      expect([href, answer.status]).toEqual([href, 200])
      expect(answer.header("content-type").split(";")[0]).toBe(type)
      expect(isHealthy(answer.header("content-type"), answer.text)).toBe(true)
      expect(answer.headers.get("vary") ?? "").not.toMatch(/\bAccept\b/)
      expect(linksOf(answer, "self")).toEqual([{ href, type }])
      expect(othersOf(answer)).toEqual(offered.filter((one) => one.href !== href))
      const headers = { "If-None-Match": answer.etag }
      expect((await send("GET", atNode(href), { basic, headers })).status).toBe(304)
      const head = await send("HEAD", atNode(href), { basic })
      expect([head.etag, head.header("link")]).toEqual([answer.etag, answer.header("link")])
      tags.push(answer.etag)
    }
    expect(new Set(tags).size).toBe(tags.length)
    for (const format of ["pdf", "", "xml&format=xml", "jsonx"]) {
      const refused = await send("GET", uriOf(format), { basic, accept: "application/json" })
      expect([format, refused.status]).toEqual([format, 400])
      // What happened, to what, and what there is.
      expect(refused.text).toContain("this resource has no format")
      expect(refused.text).toContain(`use one of ${formats.join(", ")}`)
    }
  })

  it("lists its methods, and refuses others with Allow", async () => {
    const options = await get({}, "OPTIONS")
    expect(options.status).toBe(204)
    expect(options.header("allow")).toMatch(/^GET, HEAD, (?:\w+, )*OPTIONS$/)
    const refused = await get({}, "PATCH")
    expect([refused.status, refused.header("allow")]).toEqual([405, options.header("allow")])
  })
})

describe("a notification and a listing", () => {
  it("have types of their own", async () => {
    const one = await send("GET", paths["notification"] ?? "", { basic, accept: "text/xml+rss" })
    expect([one.status, one.header("content-type")]).toEqual([200, "text/xml+rss; charset=utf-8"])
    expect(one.xml.name).toBe("notification")
    for (const [type, root] of [["application/rss+xml", "rss"], ["application/atom+xml", "feed"]]) {
      const feed = await send("GET", "/mailboxes/matrix", { basic, accept: type ?? "" })
      expect([feed.status, feed.header("content-type")]).toEqual([200, `${type}; charset=utf-8`])
      expect(feed.xml.name).toBe(root)
    }
  })
})

describe("PUT of what GET answers", () => {
  const types = ["application/xml", "application/json"]

  const putBack = async (path: string, accept: string) => {
    const shown = await send("GET", path, { basic, accept })
    const put = await send("PUT", path, { basic, type: accept, body: shown.text })
    expect([put.status, put.text]).toEqual([200, put.text])
    const again = await send("GET", path, { basic, accept })
    // Times change, and nothing else.
    const times = /20\d\d-\d\d-\d\dT[\d:.]+Z/g
    expect(again.text.replaceAll(times, "")).toBe(shown.text.replaceAll(times, ""))
  }

  it.each(["mailbox", "cabinet", "quote", "customer", "query", "registration"])(
    "changes nothing: %s",
    async (name) => {
      for (const accept of types) await putBack(paths[name] ?? "", accept)
    }
  )

  it("changes nothing: a query that expires", async () => {
    const created = await send("POST", "/queries", { body: "<query on=\"quotes\"/>" })
    expect(created.text).toContain("expires=")
    const edit = /<([^>]+)>; rel="edit"/.exec(created.header("link"))?.[1] ?? ""
    for (const accept of types) await putBack(edit, accept)
  })
})
