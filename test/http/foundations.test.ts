import { Effect } from "effect"
import { describe, expect, it } from "vitest"
import { parseForm } from "../../http/formats/form-fields.ts"
import { renderForm } from "../../http/formats/html/forms.ts"
import { html, isLinkable, link } from "../../http/formats/html/template.ts"
import { makeProblem, problemReply, problemTypeView } from "../../http/formats/problem.ts"
import type { Feed } from "../../http/formats/feeds.ts"
import { formatsOf } from "../../http/formats/representation-uris.ts"
import { entityTag, feedTypes, linkHeader, render, represent,
  type ResourceView } from "../../http/formats/representations.ts"
import { element, parseText } from "../../http/formats/xml/index.ts"
import { chooseRange, contentRange, evaluatePreconditions,
  isIfRangeSatisfied } from "../../http/pipeline/preconditions.ts"
import { entityTags, entityTagsOfPages } from "../../http/pipeline/responses.ts"
import { compileRoutes } from "../../http/pipeline/routing.ts"
import { RequestHeaders } from "../../http/wire/request.ts"

const fields = (values: Record<string, string>) => new Map(Object.entries(values))
const state = { exists: true, etag: "\"a\"", modifiedMs: Date.UTC(2024, 0, 1, 0, 0, 0, 500) }
const jan1 = "Mon, 01 Jan 2024 00:00:00 GMT"

describe("preconditions", () => {
  it.each<[string, Record<string, string>, string]>([
    ["GET", {}, "proceed"],
    ["GET", { "if-none-match": "\"a\"" }, "not-modified"],
    ["GET", { "if-none-match": "W/\"a\"" }, "not-modified"],
    ["GET", { "if-none-match": "\"b\", \"a\"" }, "not-modified"],
    ["GET", { "if-none-match": "\"b\"" }, "proceed"],
    ["GET", { "if-none-match": "*" }, "not-modified"],
    ["PUT", { "if-none-match": "*" }, "failed"],
    ["PUT", { "if-match": "\"a\"" }, "proceed"],
    ["PUT", { "if-match": "W/\"a\"" }, "failed"],
    ["PUT", { "if-match": "*" }, "proceed"],
    ["PUT", { "if-match": "a" }, "failed"],
    ["GET", { "if-modified-since": jan1 }, "not-modified"],
    ["GET", { "if-modified-since": "Sun, 31 Dec 2023 23:59:59 GMT" }, "proceed"],
    ["GET", { "if-modified-since": jan1, "if-none-match": "\"b\"" }, "proceed"],
    ["GET", { "if-modified-since": "yesterday" }, "proceed"],
    ["PUT", { "if-modified-since": jan1 }, "proceed"],
    ["PUT", { "if-unmodified-since": "Sun, 31 Dec 2023 23:59:59 GMT" }, "failed"],
    ["PUT", { "if-unmodified-since": jan1 }, "proceed"]
  ])("%s %j: %s", (method, values, expected) => {
    expect(evaluatePreconditions(method, fields(values), state)).toBe(expected)
  })

  it("matches nothing where nothing is", () => {
    expect(evaluatePreconditions("PUT", fields({ "if-match": "*" }), { exists: false })).toBe(
      "failed"
    )
    expect(evaluatePreconditions("PUT", fields({ "if-none-match": "*" }), { exists: false })).toBe(
      "proceed"
    )
  })

  it.each<[string | undefined, string]>([
    [undefined, "Whole"],
    ["bytes=0-4", "0-4"],
    ["bytes=5-", "5-9"],
    ["bytes=-3", "7-9"],
    ["bytes=-30", "0-9"],
    ["bytes=0-100", "0-9"],
    ["bytes=10-", "Unsatisfiable"],
    ["bytes=-0", "Unsatisfiable"],
    ["bytes=4-2", "Whole"],
    ["bytes=0-1,3-4", "Whole"],
    ["lines=1-2", "Whole"],
    ["bytes=", "Whole"],
    ["bytes=a-b", "Whole"]
  ])("range %s: %s", (field, expected) => {
    const range = chooseRange(field, 10)
    expect(range._tag === "Part" ? `${range.first}-${range.last}` : range._tag).toBe(expected)
  })

  it("If-Range and Content-Range", () => {
    expect(isIfRangeSatisfied("\"a\"", state)).toBe(true)
    expect(isIfRangeSatisfied("W/\"a\"", state)).toBe(false)
    expect(isIfRangeSatisfied(jan1, state)).toBe(true)
    expect(contentRange(10, { first: 0, last: 4 })).toBe("bytes 0-4/10")
    expect(contentRange(10)).toBe("bytes */10")
  })
})

describe("routing", () => {
  const match = compileRoutes([
    { pattern: "/", methods: { GET: "home" } },
    { pattern: "/mailboxes", methods: { GET: "list", POST: "open" } },
    { pattern: "/mailboxes/{mailbox}", methods: { GET: "read", POST: "deposit", DELETE: "end" } },
    { pattern: "/mailboxes/{mailbox}/notifications/{id}", methods: { GET: "one" } },
    { pattern: "/content/{id}", methods: { GET: "content", HEAD: "head" } },
    { pattern: "/content/special", methods: { GET: "special" } }
  ])

  it("finds handlers, parameters and secrets", () => {
    const found = match("GET", "/mailboxes/alice~s3cret/notifications/7")
    expect(found).toMatchObject({ _tag: "Found", handler: "one", allow: "GET, HEAD, OPTIONS" })
    if (found._tag !== "Found") return
    expect(found.parameters.get("mailbox")).toBe("alice")
    expect(found.parameters.secret("mailbox")).toBe("s3cret")
    expect(found.parameters.secret("id")).toBe(undefined)
    expect(match("HEAD", "/mailboxes")).toMatchObject({ handler: "list" })
    expect(match("HEAD", "/content/1")).toMatchObject({ handler: "head" })
    expect(match("GET", "/content/special")).toMatchObject({ handler: "special" })
    expect(match("GET", "/content/a%62")).toMatchObject({ handler: "content" })
    expect(match("GET", "/")).toMatchObject({ handler: "home" })
  })

  it("distinguishes not found, not allowed and malformed", () => {
    expect(match("PUT", "/mailboxes")).toMatchObject({
      _tag: "MethodNotAllowed",
      allow: "GET, HEAD, POST, OPTIONS"
    })
    expect(match("OPTIONS", "/mailboxes/a")).toMatchObject({
      _tag: "Options",
      allow: "GET, HEAD, POST, DELETE, OPTIONS"
    })
    for (const path of ["/nothing", "/mailboxes/", "/mailboxes/a/", "//", "/a".repeat(20)]) {
      expect(match("GET", path)._tag).toBe("NotFound")
    }
    for (
      const path of [
        "/content/%2f",
        "/content/%zz",
        "/content/%ff",
        "/content/..",
        "/content/%2e%2e",
        "/content/%00",
        "/content/é",
        `/content/${"a".repeat(3000)}`
      ]
    ) expect(match("GET", path)._tag).toBe("Malformed")
  })
})

describe("html", () => {
  it("escapes by construction and follows only safe links", () => {
    expect(html`<p title="${"\"'"}">${"<script>"}${[html`<b>${1}</b>`, undefined]}</p>`.text).toBe(
      "<p title=\"&quot;&#39;\">&lt;script&gt;<b>1</b></p>"
    )
    expect(isLinkable("javascript:alert(1)")).toBe(false)
    expect(isLinkable("//evil.example")).toBe(false)
    expect(isLinkable("/mailboxes/a")).toBe(true)
    expect(link("data:text/html,x").text).toBe("data:text/html,x")
  })

  it("labels every control of a form", () => {
    const text = renderForm({
      action: "/x",
      submit: "Send",
      controls: [{ name: "title", label: "Title", hint: "h", required: true, value: "<" }]
    }).text
    expect(text).toContain("<label for=\"f-title\">Title</label>")
    expect(text).toContain("aria-describedby=\"f-title-hint\"")
    expect(text).toContain("value=\"&lt;\"")
  })
})

describe("representations", () => {
  const view = {
    title: "A <mailbox>",
    tree: element(
      "mailbox",
      { href: "http://h/mailboxes/a", time: "2024-01-01T00:00:00Z" },
      element(
        "notification",
        { href: "/n/1" },
        element("item", {}, element("url", {}, "javascript:x"))
      )
    ),
    feed: () => ({
      href: "http://h/mailboxes/a",
      title: "A",
      updated: "2024-01-01T00:00:00Z",
      entries: [{ id: "http://h/n/1", title: "x & y", received: "2024-01-01T00:00:00Z" }]
    })
  }

  it.each(feedTypes)("%s", (type) => {
    const text = render(view, type)
    expect(text.length).toBeGreaterThan(20)
    if (type.includes("xml")) expect(parseText(text).ok).toBe(true)
    if (type === "text/html") {
      expect(text).toContain("<h1>A &lt;mailbox&gt;</h1>")
      expect(text).not.toContain("href=\"javascript:")
    }
    if (type === "application/json") {
      expect(JSON.parse(text)).toMatchObject({ notification: [{ href: "/n/1" }] })
    }
    const created = represent(view, type)
    expect(created.etag).toMatch(/^"[\w-]{22}"$/)
    expect(created.etag).toBe(entityTag(Buffer.from(text), type))
  })

  it("writes Link fields that cannot be broken out of", () => {
    expect(linkHeader([{ rel: "next", href: "/a?b=<\r\n\"é>" }])).toBe(
      "</a?b=%3C%0D%0A%22%C3%A9%3E>; rel=\"next\""
    )
    expect(linkHeader([])).toBe(undefined)
  })
})

describe("the entity tags of a page", () => {
  /** The request of a change with this `If-Match`, of a resource whose types a query can choose. */
  const callWith = (ifMatch: string) => ({
    request: {
      path: "/cabinets/c",
      query: "",
      headers: new RequestHeaders(["if-match", ifMatch]),
      choice: {
        formats: formatsOf(feedTypes),
        format: undefined,
        fault: undefined,
        uri: "http://h/cabinets/c"
      }
    }
  } as unknown as Parameters<typeof entityTags>[0])

  /** A page that notes the turn of the event loop in which each type is rendered. */
  const startPage = () => {
    const rendered: Array<number> = []
    let turn = 0
    let isDone = false
    const nextTurn = () => {
      turn++
      if (!isDone) setImmediate(nextTurn)
    }
    setImmediate(nextTurn)
    const note = <A>(value: A) => () => {
      rendered.push(turn)
      return value
    }
    const feed: Feed = { href: "/c", title: "c", updated: "2030-01-01T00:00:00Z", entries: [] }
    const view: ResourceView = {
      title: "c",
      tree: note(element("cabinet", {})),
      body: note(html`<p>c</p>`),
      feed: note(feed)
    }
    return { rendered, view, end: () => void (isDone = true) }
  }

  const tagOfOurs = `"${"x".repeat(22)}"`

  it("are the same as those of a small view, each made in a turn of its own", async () => {
    const { end, rendered, view } = startPage()
    const call = callWith(tagOfOurs)
    const pages = Effect.succeed([{ view, offered: feedTypes }])
    const tags = await Effect.runPromise(entityTagsOfPages(call, pages))
    end()
    expect(new Set(rendered).size).toBe(rendered.length)
    expect(tags).toEqual(entityTags(call, view, feedTypes))
    for (const type of ["application/xml", "text/xml", "application/json", "text/plain"] as const) {
      expect(tags).toContain(represent(view, type).etag)
    }
  })

  it.each(["*", "\"x\"", "\"\"", `"${"x".repeat(23)}"`])(
    "are not made for %s, which is the form of none",
    async (ifMatch) => {
      const pages = Effect.die("the page was read")
      const tags = await Effect.runPromise(entityTagsOfPages(callWith(ifMatch), pages))
      const [etag] = tags
      const fields = new Map([["if-match", ifMatch]])
      expect(evaluatePreconditions("PUT", fields, { exists: true, etag }))
        .toBe(ifMatch === "*" ? "proceed" : "failed")
    }
  )
})

describe("problems", () => {
  const about = (accept: string | undefined) => ({
    headers: new RequestHeaders(accept === undefined ? [] : ["accept", accept]),
    path: "/mailboxes/a~secret/x"
  })

  it("is XML by default, JSON when preferred, a page for browsers", () => {
    const xml = problemReply(
      makeProblem("not-found", "no <such> thing\u0000"),
      about(undefined),
      "http://h"
    )
    expect(xml.headers).toContainEqual(["Content-Type", "application/problem+xml; charset=utf-8"])
    const parsed = parseText(xml.body)
    expect(parsed).toMatchObject({
      value: { name: "problem", attributes: { xmlns: "urn:ietf:rfc:7807" } }
    })
    expect(xml.body).not.toContain("secret")
    const json = problemReply(
      makeProblem("conflict", "d", { rule: "r" }),
      about("application/json"),
      "http://h"
    )
    expect(json.headers).toContainEqual(["Content-Type", "application/problem+json"])
    expect(JSON.parse(json.body)).toEqual({
      type: "http://h/problems/conflict",
      title: "In conflict with the resource's state",
      status: 409,
      detail: "d",
      instance: "/mailboxes/a~/x",
      rule: "r"
    })
    const page = problemReply(makeProblem("gone"), about("text/html,*/*;q=0.8"), "http://h")
    expect(page.body).toContain("<!DOCTYPE html>")
    expect(problemReply(makeProblem("not-acceptable"), about("image/png"), "").body).toContain(
      "<?xml"
    )
    expect(problemReply(makeProblem("overloaded"), about("*/*"), "").headers).toContainEqual([
      "Retry-After",
      "1"
    ])
  })

  it("explains each kind", () => {
    expect(problemTypeView("gone")?.title).toBe("Deleted")
    expect(problemTypeView("constructor")).toBe(undefined)
  })
})

describe("forms", () => {
  it("decodes, preserves order and repetitions, refuses bad escapes and too many fields", () => {
    const parsed = parseForm("a=1+2&b=%C3%A9&a=%2B&c&=x")
    expect(parsed.ok && parsed.value.entries()).toEqual([
      ["a", "1 2"],
      ["b", "é"],
      ["a", "+"],
      ["c", ""],
      ["", "x"]
    ])
    expect(parsed.ok && parsed.value.all("a")).toEqual(["1 2", "+"])
    expect(parseForm("a=%ff")).toMatchObject({ fault: expect.stringContaining("UTF-8") })
    expect(parseForm("a=%")).toMatchObject({ ok: false })
    expect(parseForm("a&".repeat(200))).toMatchObject({
      fault: expect.stringContaining("more than")
    })
  })
})

it("writes a problem without characters that XML cannot hold", () => {
  const { detail } = makeProblem("malformed", "query: \u0000\u0010\ufffea\tü\n may be given once")
  expect(detail).toBe("query: \ufffd\ufffd\ufffda\tü\n may be given once")
})
