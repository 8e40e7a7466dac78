/** The documentation at `/docs`: its pages, its search, and the API reference. */
import { Effect } from "effect"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { Documentation, searchable, searchTexts } from "../../http/documentation/index.ts"
import { childrenOf, textOf } from "../../http/formats/xml/index.ts"
import { docsMatchesMax, docsQueryCharsMax, docsTurnCharsMax } from "../../http/limits.ts"
import { resourceTable } from "../../http/resource-table.ts"
import { apiReference } from "../../http/resources/documentation/api-reference.ts"
import { testSite } from "./documentation-site.ts"
import { type Harness, startService } from "./harness.ts"

let service: Harness

beforeAll(async () => {
  service = await startService(resourceTable)
})
afterAll(() => service.close())

const page = { accept: "text/html" }

const json = { accept: "application/json" }

const send: Harness["send"] = (...request) => service.send(...request)

describe("a page", () => {
  it("has the markup of the build, the list of all pages, and its neighbors", async () => {
    const answer = await send("GET", "/docs/quick-start", page)
    const { status, text } = answer
    expect(status).toBe(200)
    expect(text).toContain("<h1>Quick start</h1>")
    expect(text).toContain("<h2 id=\"the-first-message\">The first message</h2>")
    expect(text).toContain("<a href=\"#the-first-message\">The first message</a>")
    for (const { path } of testSite.pages) {
      expect(text).toContain(`href="${path === "" ? "/docs" : `/docs/${path}`}"`)
    }
    expect(text).toContain("href=\"/docs/quick-start\" aria-current=\"page\"")
    expect(text).toContain("rel=\"prev\">Previous: Documentation</a>")
    expect(text).toContain("rel=\"next\">Next: Recipes</a>")
    expect(answer.header("content-security-policy")).toContain("default-src 'none'")
    expect(text).not.toMatch(/<script(?! src="\/)|<style| style=/)
  })

  it("is a document with its text by headings, too", async () => {
    const { json: document, text } = await send("GET", "/docs/quick-start", json)
    expect(document).toMatchObject({
      href: `${service.base}/docs/quick-start`,
      title: "Quick start",
      section: "Start",
      file: "docs/quick-start.md",
      part: [
        { title: "Quick start", text: "From a clone." },
        {
          href: `${service.base}/docs/quick-start#the-first-message`,
          text: "Send it, and read <it> back."
        },
        { title: "What next", text: "Read on." }
      ]
    })
    expect(text).toContain("The first message")
    const plain = await send("GET", "/docs/quick-start?format=text")
    expect(plain.text).toContain("From a clone.")
  })

  it("may have a picture", async () => {
    const picture = await send("GET", "/docs/pictures/mailbox.webp")
    expect([picture.status, picture.header("content-type"), picture.text])
      .toEqual([200, "image/webp", "RIFF, and so on"])
    expect(picture.header("cache-control")).toMatch(/^public, max-age=\d+$/)
    for (const other of ["nothing.webp", "__proto__", "mailbox.webp~x"]) {
      expect((await send("GET", `/docs/pictures/${other}`)).status).toBe(404)
    }
  })

  it("is revalidated by its ETag", async () => {
    const first = await send("GET", "/docs/how-to/recipes", page)
    expect([first.status, first.header("cache-control")]).toEqual([200, "no-cache"])
    const headers = { "If-None-Match": first.etag }
    const again = await send("GET", "/docs/how-to/recipes", { ...page, headers })
    expect([again.status, again.text]).toEqual([304, ""])
  })

  it.each([
    "/docs/nothing",
    "/docs/README",
    "/docs/quick-start~x",
    "/docs/how-to/quick-start",
    "/docs/how-to",
    "/docs/reference/recipes",
    "/docs/api/nothing",
    "/docs/api/mailboxes~x"
  ])("%s is 404, with a link to the search", async (path) => {
    const answer = await send("GET", path, page)
    expect(answer.status).toBe(404)
    expect(answer.text).toContain("aria-label=\"Search the documentation\"")
  })
})

describe("the first page", () => {
  it("lists all others, also for programs", async () => {
    const { xml } = await send("GET", "/docs")
    expect(xml.name).toBe("documentation")
    expect(childrenOf(xml, "page").map(({ attributes }) => attributes["href"]))
      .toEqual(
        testSite.pages.map(({ path }) => `${service.base}/docs${path === "" ? "" : `/${path}`}`)
      )
  })

  it("is linked from every page, also from a problem", async () => {
    for (const path of ["/", "/problems", "/nothing", "/docs/quick-start"]) {
      expect((await send("GET", path, page)).text).toContain("<a href=\"/docs\"")
    }
  })
})

describe("a search", () => {
  const found = async (query: string) => {
    const { xml } = await send("GET", `/docs?q=${encodeURIComponent(query)}`)
    return childrenOf(xml, "match").map((match) => [
      (match.attributes["href"] ?? "").replace(service.base, ""),
      textOf(match)
    ])
  }

  it("finds places with all words, in any case, and shows the text around the first", async () => {
    expect(await found("CRON  message")).toEqual([
      ["/docs/how-to/recipes", "A cron job sends a message when it ends."]
    ])
    expect(await found("cron xyzzy")).toEqual([])
  })

  it("puts headings before texts", async () => {
    const [first] = await found("message first")
    expect(first?.[0]).toBe("/docs/quick-start#the-first-message")
  })

  it("finds operations of the API reference", async () => {
    const hrefs = (await found("opens a mailbox")).map(([href]) => href)
    expect(hrefs).toContainEqual(expect.stringMatching(/^\/docs\/api\/mailboxes#/))
  })

  it("shows the words and the excerpts as text, never as markup", async () => {
    const { text } = await send("GET", `/docs?q=${encodeURIComponent("<it>")}`, page)
    expect(text).toContain("<mark>&lt;it&gt;</mark> back.")
    expect(text).toContain("value=\"&lt;it&gt;\"")
    expect(text).not.toContain("<it>")
  })

  it("without a word is the first page", async () => {
    for (const query of ["q=", "q=+"]) {
      expect((await send("GET", `/docs?${query}`, page)).text).toContain("<h1>Documentation</h1>")
    }
  })

  it("lets other work go on while it compares many characters", async () => {
    const count = 12
    const texts = Array.from({ length: count }, (_, n) =>
      searchable({
        href: `/docs/part-${n}`,
        page: "Page",
        title: `Part ${n}`,
        text: "x".repeat(docsTurnCharsMax)
      }))
    let turns = 0
    let isDone = false
    const nextTurn = () => {
      turns++
      if (!isDone) setImmediate(nextTurn)
    }
    setImmediate(nextTurn)
    expect(await Effect.runPromise(searchTexts(texts, "part xx"))).toHaveLength(count)
    isDone = true
    expect(turns).toBeGreaterThanOrEqual(count - 1)
  })

  it("says that nothing was found", async () => {
    const { status, text } = await send("GET", "/docs?q=xyzzy", page)
    expect([status, text.includes("No page has all of these words.")]).toEqual([200, true])
  })

  it("is bounded: its length, the terms that count, and the places that it shows", async () => {
    const long = "x".repeat(docsQueryCharsMax + 1)
    const refused = await send("GET", `/docs?q=${long}`)
    expect([refused.status, refused.child("detail")])
      .toEqual([400, `q has more than ${docsQueryCharsMax} characters; search for fewer words`])
    expect((await send("GET", "/docs?q=a%00b")).status).toBe(400)
    expect((await send("GET", "/docs?q=a&q=b")).status).toBe(400)
    const [first, ...others] = testSite.pages
    const parts = Array.from({ length: 2 * docsMatchesMax }, (_, n) => ({
      id: `p${n}`,
      title: `Part ${n}`,
      text: "One of many."
    }))
    const site = { pages: [first, { ...others[0], parts }], pictures: {} }
    const documentation = new Documentation(() => Promise.resolve(JSON.stringify(site)))
    const large = await startService(resourceTable, { documentation })
    const { xml } = await large.send("GET", "/docs?q=many")
    expect(childrenOf(xml, "match")).toHaveLength(docsMatchesMax)
    await large.close()
  })
})

describe("the API reference", () => {
  it("has every operation of /openapi.json, by resource", async () => {
    const { xml } = await send("GET", "/docs/api")
    const shown = childrenOf(xml, "operation").map(({ attributes }) =>
      `${attributes["method"]} ${attributes["path"]}`
    )
    const described = service.contract.operations().map(({ key }) => key)
      .filter((key) => !/^(?:HEAD|OPTIONS) /.test(key))
    expect(shown.toSorted()).toEqual(described.toSorted())
    for (const { attributes } of childrenOf(xml, "operation")) {
      const [path = "", id = ""] = (attributes["href"] ?? "").replace(service.base, "").split("#")
      const { text } = await send("GET", path, page)
      expect(text).toContain(`<h2 id="${id}">`)
    }
  })

  it("has the parameters, the body with an example, and the answers of an operation", async () => {
    const { text } = await send("GET", "/docs/api/mailboxes", page)
    const [, section = ""] = text.split("<h2 id=\"openMailbox\">")
    const own = section.split("</section>")[0] ?? ""
    const parts = ["POST", "<code>Idempotency-Key</code>", "NewMailbox", "&quot;name&quot;", "201"]
    for (const part of parts) expect(own).toContain(part)
    expect(own).toContain("<a href=\"/problems/unprocessable\">unprocessable</a>")
  })

  it("leads nowhere but to what is there", async () => {
    for (const { name } of apiReference(await document()).resources) {
      const { text } = await send("GET", `/docs/api/${name}`, page)
      const ids = new Set([...text.matchAll(/ id="([^"]+)"/g)].map(([, id]) => id))
      const dead = [...text.matchAll(/href="#([^"]+)"/g)].filter(([, id]) => !ids.has(id))
      expect([name, dead.map(([, id]) => id)]).toEqual([name, []])
    }
  })

  it("has examples that the document accepts", async () => {
    const { contract } = service
    const pointers = new Map(contract.operations().map(({ key, pointer }) => [key, pointer]))
    let examples = 0
    for (const { operations } of apiReference(await document()).resources) {
      for (const { bodies, method, path } of operations) {
        for (const { example, types } of bodies) {
          if (example === undefined || !types.includes("application/json")) continue
          const pointer = pointers.get(`${method} ${path}`) ?? ""
          const schema = `${pointer}/requestBody/content/application~1json/schema`
          const faults = contract.bodyFaults(schema, "application/json", example)
          expect([method, path, example, faults]).toEqual([method, path, example, []])
          examples++
        }
      }
    }
    expect(examples).toBeGreaterThan(15)
  })

  const document = async (): Promise<Record<string, unknown>> => {
    const { json } = await send("GET", "/openapi.json")
    // The tests of /openapi.json check its shape.
    return json as Record<string, unknown>
  }
})

describe("a program without its documentation", () => {
  it("says so, and how to build it", async () => {
    const documentation = new Documentation(() => Promise.resolve(undefined))
    const bare = await startService(resourceTable, { documentation })
    for (const path of ["/docs", "/docs/quick-start", "/docs/api", "/docs/api/mailboxes"]) {
      const answer = await bare.send("GET", path)
      expect([path, answer.status, answer.child("detail")])
        .toEqual([path, 404, expect.stringContaining("npm run build")])
    }
    await bare.close()
  })

  it("reads it again after a failure", async () => {
    let reads = 0
    const documentation = new Documentation(async () => {
      reads++
      if (reads === 1) throw new Error("the disk is away")
      return JSON.stringify(testSite)
    })
    const failing = await startService(resourceTable, { documentation })
    expect((await failing.send("GET", "/docs")).status).toBe(500)
    expect((await failing.send("GET", "/docs")).status).toBe(200)
    expect((await failing.send("GET", "/docs")).status).toBe(200)
    expect(reads).toBe(2)
    await failing.close()
  })
})
