/** Webhooks of services that do not know the protocol, and the templates of a mailbox. */
import { readFileSync } from "node:fs"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { childOf, childrenOf, textOf } from "../../http/formats/xml/index.ts"
import { uriCharsMax, webhookValuesCharsMax } from "../../http/limits.ts"
import { fillTemplate, isTemplate, senderNames,
  templatesOf } from "../../http/resources/mailboxes/webhook-template.ts"
import { descriptions, itemOf, type Mailboxes, notification, owner,
  startMailboxes } from "./mailbox-harness.ts"

let service: Mailboxes

beforeAll(async () => {
  service = await startMailboxes()
})

afterAll(() => service.close())

const json = "application/json"

const alert = {
  receiver: "restante",
  status: "firing",
  alerts: [{
    status: "firing",
    labels: { alertname: "DiskFull", severity: "critical", job: "node" },
    annotations: { summary: "/ is 96 % full" },
    generatorURL: "http://prometheus.example:9090/graph?g0.expr=up&g0.tab=1"
  }],
  commonLabels: { alertname: "DiskFull", severity: "critical", job: "node" },
  commonAnnotations: { summary: "/ is 96 % full" },
  externalURL: "http://alertmanager.example:9093"
}

/** What a sender posts, and what becomes of it. */
const webhooks: ReadonlyArray<readonly [string, unknown, Readonly<Record<string, string>>]> = [
  ["alertmanager", alert, {
    description: "[firing] DiskFull / is 96 % full",
    priority: "5",
    tags: "firing,node",
    click: "http://prometheus.example:9090/graph?g0.expr=up&g0.tab=1"
  }],
  ["grafana", {
    title: "[FIRING:1] High memory usage (zone us-1)",
    status: "firing",
    alerts: [{ labels: {}, panelURL: "https://grafana.example.org/d/dash?viewPanel=1" }],
    commonLabels: { alertname: "High memory usage", severity: "warning" },
    externalURL: "https://grafana.example.org/"
  }, {
    description: "[FIRING:1] High memory usage (zone us-1)",
    priority: "4",
    tags: "firing,High memory usage",
    click: "https://grafana.example.org/d/dash?viewPanel=1"
  }],
  ["github", {
    action: "opened",
    issue: { title: "Spelling error", html_url: "https://github.com/o/r/issues/1" },
    repository: { full_name: "o/r", html_url: "https://github.com/o/r" },
    sender: { login: "octocat" }
  }, {
    description: "o/r opened Spelling error",
    tags: "octocat",
    click: "https://github.com/o/r/issues/1"
  }],
  ["github", {
    ref: "refs/heads/main",
    compare: "https://github.com/o/r/compare/1...2",
    head_commit: { message: "Fix all of it\n\nSince it was broken." },
    repository: { full_name: "o/r", html_url: "https://github.com/o/r" },
    sender: { login: "octocat", "+1": 1 }
  }, {
    description: "o/r refs/heads/main Fix all of it",
    tags: "octocat",
    click: "https://github.com/o/r/compare/1...2"
  }],
  ["github", {
    action: "created",
    issue: { title: "Spelling error", html_url: "https://github.com/o/r/issues/1" },
    comment: { body: "It is “neighbors”.", html_url: "https://github.com/o/r/issues/1#c2" },
    repository: { full_name: "o/r" },
    sender: { login: "octocat" }
  }, {
    description: "o/r created Spelling error It is “neighbors”.",
    tags: "octocat",
    click: "https://github.com/o/r/issues/1#c2"
  }],
  ["GitHub", {
    action: "published",
    release: { name: null, tag_name: "v1.2", html_url: "https://github.com/o/r/releases/1" },
    repository: { full_name: "o/r" },
    sender: { login: "octocat" }
  }, {
    description: "o/r published v1.2",
    tags: "octocat",
    click: "https://github.com/o/r/releases/1"
  }],
  ["github", {
    action: "created",
    alert: {
      html_url: "https://github.com/o/r/security/dependabot/1",
      security_advisory: { summary: "Denial of service in q", severity: "moderate" }
    },
    repository: { full_name: "o/r", html_url: "https://github.com/o/r" },
    sender: { login: "github" }
  }, {
    description: "o/r created Denial of service in q",
    priority: "3",
    tags: "github",
    click: "https://github.com/o/r/security/dependabot/1"
  }],
  ["alertmanager", { ...alert, status: "resolved" }, {
    description: "[resolved] DiskFull / is 96 % full",
    priority: "3",
    tags: "resolved,node",
    click: "http://prometheus.example:9090/graph?g0.expr=up&g0.tab=1"
  }],
  ["stripe", {
    id: "evt_1",
    object: "event",
    type: "invoice.paid",
    data: { object: { id: "in_1", customer_email: "a@example.org", description: null } }
  }, {
    description: "invoice.paid a@example.org",
    click: "https://dashboard.stripe.com/events/evt_1"
  }]
]

const form = "application/x-www-form-urlencoded"

const png = Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x00, 0xff])

/** Bodies without JSON, and the description of each. */
const others: ReadonlyArray<readonly [type: string, body: string | Uint8Array, about: string]> = [
  ["image/png", png, "A picture"],
  ["application/pdf", "%PDF-1.7", "A PDF document"],
  ["text/csv; charset=utf-8", "host,load\r\na,1", "host,load"],
  ["text/html", "<script>alert(1)</script>", "An HTML page"],
  [
    "application/xml",
    "<?xml version=\"1.0\"?><!-- 1 --><rss version=\"2.0\"/>",
    "An XML document (rss)"
  ],
  ["image/svg+xml", "<svg xmlns=\"http://www.w3.org/2000/svg\"/>", "A picture"],
  ["application/xml", "<open>", "An XML document (open)"],
  ["application/xml", Buffer.from([0xff, 0x00]), "An XML document"],
  [json, "{\"title\":", "A webhook that is no valid JSON"],
  ["multipart/form-data; boundary=b", "--b\r\n\r\n1\r\n--b--\r\n", "A form with files"],
  [form, "description=&amount=7", "description=&amount=7"],
  ["text/plain; charset=iso-8859-1", Buffer.from([0xe9]), "A webhook of the type text/plain"],
  ["application/vnd.sensor", "21.5", "A webhook of the type application/vnd.sensor"],
  ["no media type", "21.5", "A webhook of the type no media type"]
]

/** The fields of the only notification of a mailbox, and its content. */
const stored = async (href: string) => {
  const listing = await service.send("GET", href, { basic: owner })
  const [only, ...more] = childrenOf(listing.xml, "notification")
  expect(more).toEqual([])
  const { url = "", ...fields } = Object.fromEntries(
    childrenOf(itemOf(only)).flatMap((field) =>
      typeof field === "string" ? [] : [[field.name, textOf(field)]]
    )
  )
  return { fields, content: await service.send("GET", url) }
}

describe("a mailbox that takes webhooks", () => {
  it.each(webhooks)("makes a notification of what %s posts", async (sender, sent, fields) => {
    const { href } = await service.open(
      `${sender.toLowerCase()}-${webhooks.findIndex(([, one]) => one === sent)}`,
      `<webhook>${sender}</webhook>`
    )
    const body = JSON.stringify(sent)
    const first = await service.send("POST", href, { body, type: `${json}; charset=utf-8` })
    expect([first.status, first.text]).toEqual([202, ""])
    const again = await service.send("POST", href, { body, type: json, basic: owner })
    expect([again.status, again.header("location")]).toEqual([202, first.header("location")])
    const { content, fields: made } = await stored(href)
    expect(made).toEqual(fields)
    expect([content.header("content-type"), content.text]).toEqual([json, body])
  })

  it("has templates for each sender that it names", () => {
    const named = webhooks.map(([sender]) => sender.toLowerCase())
    expect([...new Set(named)].toSorted()).toEqual(senderNames)
  })

  it("has the templates that the recipe lists", () => {
    const page = readFileSync(new URL("../../docs/how-to/recipes.md", import.meta.url), "utf8")
    for (const name of senderNames) {
      const row = page.split("\n").find((line) => line.startsWith(`| ${name} `)) ?? ""
      const texts = [...row.matchAll(/`([^`]*)`/g)].map(([, text = ""]) =>
        text.replaceAll("\\|", "|")
      )
      expect([name, texts]).toEqual([name, Object.values(templatesOf({ description: name }))])
    }
  })

  it("uses its own templates, and those of the sender that it names for the rest", async () => {
    const { href } = await service.open(
      "own",
      "<webhook>{/a/0/b} of {/none|/c}</webhook><webhook-tags>x, {/c},,</webhook-tags>" +
        "<webhook-priority>{/level}</webhook-priority><webhook-link>{/page}</webhook-link>"
    )
    const body = JSON.stringify({ a: [{ b: 7 }], c: true, level: "Warn", page: "javascript:x" })
    const type = "application/cloudevents+json"
    expect((await service.send("POST", href, { body, type })).status).toBe(202)
    const { content, fields } = await stored(href)
    expect(fields).toEqual({ description: "7 of true", priority: "4", tags: "x,true" })
    expect(content.header("content-type")).toBe(type)
    expect(templatesOf({ description: "stripe", tags: "{/livemode}" })).toMatchObject({
      description: expect.stringContaining("{/type}"),
      link: expect.stringContaining("dashboard"),
      tags: "{/livemode}"
    })
  })

  it("is what another mailbox names, when it refuses a webhook", async () => {
    const { href } = await service.open("plain")
    const refused = await service.send("POST", href, { body: "{\"type\":\"x\"}", type: json })
    expect(refused.status).toBe(422)
    expect(refused.text).toContain("item is required; a mailbox takes other documents as webhooks")
  })

  it("refuses no webhook for what its templates make of it", async () => {
    const { href } = await service.open("odd", "<webhook>github</webhook>")
    for (const body of ["[]", "null", "7", "\"text\"", "{\"action\":\"\\u0001\\ud800\"}"]) {
      expect((await service.send("POST", href, { body, type: json })).status, body).toBe(202)
    }
    const listing = await service.send("GET", href, { basic: owner })
    const all = childrenOf(listing.xml, "notification").map((one) =>
      textOf(childOf(itemOf(one), "description") ?? itemOf(one))
    )
    expect(all).toEqual(Array.from({ length: 5 }, () => "A webhook"))
  })

  it("takes GitHub's form, whose field is the JSON for the templates", async () => {
    const { href } = await service.open("form", "<webhook>github</webhook>")
    const sent = webhooks.find(([sender]) => sender === "github")?.[1]
    const body = new URLSearchParams({ payload: JSON.stringify(sent) }).toString()
    expect((await service.send("POST", href, { body, type: form })).status).toBe(202)
    const { content, fields } = await stored(href)
    expect(fields).toEqual({
      description: "o/r opened Spelling error",
      tags: "octocat",
      click: "https://github.com/o/r/issues/1"
    })
    expect([content.header("content-type"), content.text]).toEqual([form, body])
    // A form of a page has at most 64 KiB; this one is as large as a document may be.
    const other = await service.open("large-form", "<webhook>{/title}</webhook>")
    const payload = JSON.stringify({ title: "large", quotes: "\"".repeat(30_000) })
    const large = new URLSearchParams({ payload }).toString()
    expect(large.length).toBeGreaterThan(100_000)
    expect((await service.send("POST", other.href, { body: large, type: form })).status).toBe(202)
    expect((await stored(other.href)).fields).toEqual({ description: "large" })
  })

  it.each(others)("takes as it is: %s", async (type, body, description) => {
    const name = `other-${others.findIndex((one) => one[0] === type && one[1] === body)}`
    const { href } = await service.open(
      name,
      "<webhook>{/title}</webhook><webhook-link>https://example.org/{/id}</webhook-link>"
        + "<webhook-tags>shop</webhook-tags>"
    )
    expect((await service.send("POST", href, { body, type })).status).toBe(202)
    const { content, fields } = await stored(href)
    expect(fields).toEqual({ description, tags: "shop" })
    expect(content.header("content-type")).toBe(
      type === "no media type" ? "application/octet-stream" : type
    )
    expect(content.header("content-length")).toBe(String(Buffer.from(body).length))
    if (typeof body === "string") expect(content.text).toBe(body)
    expect(content.header("content-security-policy")).toContain("sandbox")
    expect(content.header("x-content-type-options")).toBe("nosniff")
    const isInline = /^(?:text\/plain|image\/png)/.test(type)
    expect(content.header("content-disposition")).toBe(isInline ? "inline" : "attachment")
  })

  it("describes what has no JSON by a template that names no value", async () => {
    const { href } = await service.open("constant", "<webhook>The camera</webhook>")
    expect((await service.send("POST", href, { body: png, type: "image/png" })).status).toBe(202)
    expect((await stored(href)).fields).toEqual({ description: "The camera" })
  })

  it("takes them with an Idempotency-Key, and from an account where only these may", async () => {
    const { href } = await service.open(
      "accounts",
      "<webhook>{/title}</webhook><deposit>accounts</deposit>"
    )
    const sent = { body: png, type: "image/png" }
    expect((await service.send("POST", href, sent)).status).toBe(401)
    const headers = { "Idempotency-Key": "a-key-of-22-characters-or-more" }
    const first = await service.send("POST", href, { ...sent, basic: service.bob, headers })
    const again = await service.send("POST", href, { ...sent, basic: service.bob, headers })
    expect([first.status, again.status]).toEqual([202, 202])
    expect(again.header("location")).toBe(first.header("location"))
    expect((await stored(href)).fields).toEqual({ description: "A picture" })
  })

  it("takes no more of any type than of a document", async () => {
    const { href } = await service.open("large", "<webhook>grafana</webhook>")
    const plain = await service.open("large-plain")
    const sent = { body: Buffer.alloc(256 * 1024 + 1), type: "image/png" }
    expect((await service.send("POST", href, sent)).status).toBe(413)
    expect((await service.send("POST", plain.href, sent)).status).toBe(415)
  })

  it("still takes notifications and text, and reports their faults", async () => {
    const { href } = await service.open("both", "<webhook>grafana</webhook>")
    const status = async (body: string, type: string, headers = {}) =>
      (await service.send("POST", href, { body, type, headers })).status
    expect(await status(notification("hello"), "application/xml")).toBe(202)
    const item = { description: "in JSON", url: "http://example.org/" }
    expect(await status(JSON.stringify({ item }), json)).toBe(202)
    expect(await status("description=a&content=b", form)).toBe(202)
    expect(await status("some=text", form)).toBe(202)
    expect(await status("payload=text", form)).toBe(202)
    expect(await status("hello", "text/plain", { Priority: "high" })).toBe(202)
    const listing = await service.send("GET", href, { basic: owner })
    expect(descriptions(listing))
      .toEqual(["hello", "in JSON", "a", "some=text", "payload=text", "hello"])
    const xml = "application/xml"
    const unfinished = "<?xml version=\"1.0\"?><notification><item/></notification>"
    expect(await status(unfinished, xml)).toBe(422)
    expect(await status("<!DOCTYPE notification><notification/>", xml)).toBe(400)
    expect(await status("<notification>", xml)).toBe(400)
    expect(await status("description=&content=b", form)).toBe(422)
    // The form of the page sends all of its fields, also empty ones.
    expect(await status("description=a&content=b&priority=7&tags=&click=", form)).toBe(422)
    expect(await status("hello", "text/plain", { Priority: "7" })).toBe(422)
    for (const type of [json, xml, form, "image/png", "text/plain"]) {
      expect([400, 415, 422], type).toContain(await status("", type))
    }
    expect(descriptions(await service.send("GET", href, { basic: owner }))).toHaveLength(6)
  })

  it("is the only one that does: others refuse the same bodies, as ever", async () => {
    const { href } = await service.open("none")
    const status = async (body: string, type: string) =>
      (await service.send("POST", href, { body, type })).status
    expect(await status("{\"title\":", json)).toBe(400)
    expect(await status("<rss/>", "application/xml")).toBe(422)
    expect(await status("PNG", "image/png")).toBe(415)
    expect(await status("a,b", "text/csv")).toBe(415)
    expect(await status("description=&amount=7", form)).toBe(422)
    expect(await status("payload=%7B%7D", form)).toBe(202)
    expect(descriptions(await service.send("GET", href, { basic: owner })))
      .toEqual(["payload=%7B%7D"])
  })

  it("shows its templates to its owner, who changes and removes them", async () => {
    const { href } = await service.open("shown", "<webhook>{/title}</webhook>")
    const listing = await service.send("GET", href, { basic: owner })
    expect(textOf(childOf(listing.xml, "webhook") ?? listing.xml)).toBe("{/title}")
    const page = await service.send("GET", href, { basic: owner, accept: "text/html" })
    expect(page.text).toContain("<dd>{/title}</dd>")
    const link = "<mailbox><webhook-link>{/url}</webhook-link></mailbox>"
    expect((await service.send("PUT", href, { basic: owner, body: link })).text)
      .toContain("<webhook-link>{/url}</webhook-link></mailbox>")
    const body = JSON.stringify({ url: "http://example.org/" })
    expect((await service.send("POST", href, { body, type: json })).status).toBe(202)
    await service.send("PUT", href, { basic: owner, body: "<mailbox/>" })
    expect((await service.send("POST", href, { body, type: json })).status).toBe(422)
    expect((await service.send("POST", href, { body, type: json, basic: owner })).status).toBe(422)
  })

  it("refuses a template with a brace outside a pointer", async () => {
    for (const name of ["webhook", "webhook-link", "webhook-priority", "webhook-tags"]) {
      const body = `<mailbox><${name}>{title}</${name}></mailbox>`
      const answer = await service.send("POST", "/mailboxes", { basic: owner, body })
      expect([answer.status, answer.child("detail")]).toEqual([
        422,
        expect.stringContaining(`${name} has a brace outside a pointer`)
      ])
    }
    const long = `<mailbox><webhook>${"x".repeat(1025)}</webhook></mailbox>`
    expect((await service.send("POST", "/mailboxes", { basic: owner, body: long })).status).toBe(
      422
    )
  })
})

describe("a template", () => {
  const document = {
    "a/b": { "~": "x" },
    list: ["one"],
    "": "empty",
    n: null,
    o: {},
    l: " two\nlines"
  }

  it.each([
    ["{/a~1b/~0}", "x"],
    ["{/list/0}{/list/1}{/list/length}", "one"],
    ["{/}", "empty"],
    ["{/n|/o|/list|/none|/l}.", "two."],
    ["{/toString}{/__proto__}{/list/constructor}", ""],
    ["plain", "plain"]
  ])("%s", (template, text) => {
    expect(isTemplate(template)).toBe(true)
    expect(fillTemplate(template, document)).toBe(text)
  })

  it("takes a bounded part of a long value, however often it names it", () => {
    const long = { "": "x ".repeat(100_000), link: `https://a.example/${"x".repeat(100_000)}` }
    const filled = fillTemplate("{/}".repeat(341), long)
    expect(filled.length).toBeLessThanOrEqual(webhookValuesCharsMax)
    // A link that is cut is too long to be one.
    expect(fillTemplate("{/link}", long).length).toBeGreaterThan(uriCharsMax)
  })

  it.each(["{", "}", "{}", "{a}", "{/a", "{/a|b}", "{/a~2}", "{{/a}}"])("is not %s", (text) => {
    expect(isTemplate(text)).toBe(false)
  })
})
