/** The resources of the service itself (protocol §6): home, problems and static files. */
import { createHash } from "node:crypto"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { problemTypes } from "../../http/formats/problem-types.ts"
import { childrenOf } from "../../http/formats/xml/index.ts"
import { resourceTable } from "../../http/resource-table.ts"
import { type Harness, startService } from "./harness.ts"

let service: Harness

beforeAll(async () => {
  service = await startService(resourceTable)
})
afterAll(() => service.close())

const send: Harness["send"] = (...request) => service.send(...request)

describe("/", () => {
  it("is a service document with absolute entry points", async () => {
    const home = await send("GET", "/")
    expect([home.status, home.xml.name]).toEqual([200, "service"])
    const links = childrenOf(home.xml, "link").map(({ attributes }) => attributes)
    const rels = links.map(({ rel }) => rel)
    expect(rels).toEqual(expect.arrayContaining(["content", "mailboxes", "bridge", "sessions"]))
    for (const { href } of links) expect(href?.startsWith(`${service.base}/`)).toBe(true)
    const json = await send("GET", "/", { accept: "application/json" })
    expect(json.json).toMatchObject({ link: expect.any(Array) })
  })

  it("is a page for browsers, with the page's policy", async () => {
    const page = await send("GET", "/", { accept: "text/html,application/xhtml+xml,*/*;q=0.8" })
    expect(page.header("content-type")).toBe("text/html; charset=utf-8")
    expect(page.header("content-security-policy")).toContain("default-src 'none'")
    expect(page.header("referrer-policy")).toBe("no-referrer")
    for (const path of ["/cross_bridge", "/sessions", "/mailboxes", "/cabinets", "/problems"]) {
      expect(page.text).toContain(`href="${path}"`)
    }
    expect(page.text).toContain(`${service.base}/content`)
    const headers = { "If-None-Match": page.etag }
    expect((await send("GET", "/", { accept: "text/html", headers })).status).toBe(304)
    expect((await send("GET", "/", { headers })).status).toBe(200)
  })

  it("leads who writes programs to the recipes", async () => {
    const { text } = await send("GET", "/", { accept: "text/html" })
    const [, programs = ""] = text.split("<h2>The same by program</h2>")
    expect(programs).toContain("<a href=\"/docs/how-to/recipes\">")
  })

  it.each([
    ["/", ["\"/\" aria-current=\"page\""]],
    ["/problems", ["\"/problems\" aria-current=\"page\""]],
    ["/problems/gone", ["\"/problems\" aria-current=\"true\""]],
    ["/mailboxes/nowhere", ["\"/mailboxes\" aria-current=\"true\""]],
    ["/cluster", ["\"/cluster\" aria-current=\"page\""]],
    ["/nowhere", []]
  ])("the navigation of %s says where that is", async (path, current) => {
    const { text } = await send("GET", path, { accept: "text/html" })
    expect([...text.matchAll(/<a[^>]* href=("[^>]*aria-current[^>]*)>/g)].map(([, at]) => at))
      .toEqual(current)
  })

  it("the header has an icon before each word, which assistive technology skips", async () => {
    const { text } = await send("GET", "/problems", { accept: "text/html" })
    const header = /<header>(.*?)<\/header>/s.exec(text)?.[1] ?? ""
    const links = [...header.matchAll(/<a (?!class="brand")[^>]*>(.*?)<\/a>/gs)]
      .map(([, content = ""]) => content)
    const icon = /^<svg class="icon"[^>]* aria-hidden="true">(?:<[a-z]+ [^>]*\/>)+<\/svg>/
    expect(links.filter((content) => !icon.test(content))).toEqual([])
    expect(links.map((content) => content.replace(icon, ""))).toEqual([
      "Sign in",
      "Mailboxes",
      "Outgoing",
      "Content",
      "Cabinets",
      "Bridge",
      "Customers",
      "Quotes",
      "Queries",
      "Cluster",
      "Docs"
    ])
    expect(text).not.toMatch(/ style=|<style/)
  })

  it("answers HEAD, OPTIONS, and 405 to others", async () => {
    expect((await send("HEAD", "/")).status).toBe(200)
    expect((await send("OPTIONS", "/")).header("allow")).toBe("GET, HEAD, OPTIONS")
    expect((await send("DELETE", "/")).header("allow")).toBe("GET, HEAD, OPTIONS")
  })
})

describe("/problems", () => {
  it("lists every kind, and each has its explanation", async () => {
    const list = await send("GET", "/problems")
    const hrefs = childrenOf(list.xml).map(({ attributes }) => attributes["href"] ?? "")
    expect(hrefs).toHaveLength(Object.keys(problemTypes).length)
    for (const href of hrefs) {
      const one = await send("GET", href)
      expect([one.status, one.xml.name]).toEqual([200, "problem-type"])
      expect(one.child("explanation")).not.toBe("")
    }
  })

  it("404 for an unknown kind", async () => {
    for (const path of ["/problems/none", "/problems/__proto__", "/problems/conflict~x"]) {
      expect((await send("GET", path)).status).toBe(404)
    }
  })

  it("explains the type that a problem names", async () => {
    const { xml } = await send("GET", "/nowhere")
    const type = childrenOf(xml, "type")[0]?.children.join("") ?? ""
    const page = await send("GET", type, { accept: "text/html" })
    expect([page.status, page.text.includes("Nothing is here")]).toEqual([200, true])
  })
})

describe("fixed files", () => {
  it.each([
    ["/style.css", "text/css; charset=utf-8"],
    ["/robots.txt", "text/plain; charset=utf-8"],
    ["/favicon.ico", "image/svg+xml"],
    ["/icon.png", "image/png"],
    ["/fonts/OFL.txt", "text/plain; charset=utf-8"],
    ["/manifest.webmanifest", "application/manifest+json"]
  ])("%s may be cached, and is revalidated by its ETag", async (path, type) => {
    const file = await send("GET", path)
    expect([file.status, file.header("content-type")]).toEqual([200, type])
    expect(file.header("cache-control")).toMatch(/^public, max-age=\d+$/)
    expect(file.header("x-content-type-options")).toBe("nosniff")
    const headers = { "If-None-Match": file.etag }
    const repeated = await send("GET", path, { headers })
    expect([repeated.status, repeated.text]).toEqual([304, ""])
    expect((await send("GET", path, { headers: { "If-Match": `"other"` } })).status).toBe(412)
    expect((await send("HEAD", path)).text).toBe("")
  })

  it("browsers keep the typeface, whose name changes with it", async () => {
    const page = await send("GET", "/", { accept: "text/html" })
    const [preload = "", path = ""] = /<link rel="preload" href="([^"]+)"[^>]*>/.exec(page.text) ??
      []
    expect(preload).toContain(`as="font" type="font/woff2" crossorigin`)
    const font = await send("GET", path)
    expect([font.status, font.header("content-type")]).toEqual([200, "font/woff2"])
    expect(font.header("cache-control")).toBe("public, max-age=31536000, immutable")
    const bytes = Buffer.from(await (await fetch(service.base + path)).arrayBuffer())
    expect(bytes.subarray(0, 4).toString("latin1")).toBe("wOF2")
    const digest = createHash("sha256").update(bytes).digest("hex")
    expect(path).toBe(`/fonts/inter-${digest.slice(0, 16)}.woff2`)
    expect((await send("GET", "/style.css")).text).toContain(`url(${path}) format("woff2")`)
    const license = await send("GET", "/fonts/OFL.txt")
    expect(license.text).toContain("SIL OPEN FONT LICENSE Version 1.1")
    expect(license.text).toContain("Copyright (c) Sindre Sorhus")
    for (const other of ["/fonts/inter.woff2", "/fonts/OFL.txt~x", "/fonts/__proto__"]) {
      expect((await send("GET", other)).status).toBe(404)
    }
  })

  it("security.txt names the operator's contact, for a year (RFC 9116)", async () => {
    const path = "/.well-known/security.txt"
    const { headers, text } = await send("GET", path)
    expect(headers.get("content-type")).toBe("text/plain; charset=utf-8")
    expect(text).toContain("Contact: mailto:security@example.org\n")
    expect(text).toContain(`Canonical: ${service.base}${path}\n`)
    const expiresMs = Date.parse(/^Expires: (.+)$/m.exec(text)?.[1] ?? "")
    expect(expiresMs - Date.now()).toBeGreaterThan(300 * 24 * 60 * 60_000)
    const unset = await startService(resourceTable, { securityContact: undefined })
    try {
      expect((await unset.send("GET", path)).status).toBe(404)
    } finally {
      await unset.close()
    }
  })

  it("security.txt is made again each day, so that it never expires", async () => {
    const dayMs = 24 * 60 * 60_000
    let nowMs = Date.parse("2030-01-01T00:00:00Z")
    const shifted = await startService((shared) => resourceTable({ ...shared, nowMs: () => nowMs }))
    const read = async () => {
      const { etag, text } = await shifted.send("GET", "/.well-known/security.txt")
      return { etag, expiresMs: Date.parse(/^Expires: (.+)$/m.exec(text)?.[1] ?? "") }
    }
    try {
      const first = await read()
      nowMs += dayMs - 1
      expect(await read()).toEqual(first)
      nowMs += 400 * dayMs
      const later = await read()
      expect(later.etag).not.toBe(first.etag)
      expect(later.expiresMs).toBeGreaterThan(nowMs)
    } finally {
      await shifted.close()
    }
  })

  it("robots.txt excludes capabilities", async () => {
    const { text } = await send("GET", "/robots.txt")
    for (const path of ["/content/", "/mailboxes", "/outgoing"]) {
      expect(text).toContain(`Disallow: ${path}\n`)
    }
  })
})
