/** The pages of a mailbox and of its notifications, as a browser gets them. */
import { afterAll, beforeAll, expect, test } from "vitest"
import { sizeText, uriName } from "../../http/formats/html/index.ts"
import { previewCharsMax, previewReadBytesMax, previewRowsMax, shownMessageBytesMax,
  shownPictureBytesMax } from "../../http/limits.ts"
import { type Mailboxes, notification, owner, startMailboxes } from "./mailbox-harness.ts"
import { eventually } from "./receiver.ts"

let service: Mailboxes

beforeAll(async () => {
  service = await startMailboxes(undefined, { contentBytesMax: 2 * shownPictureBytesMax })
})

afterAll(() => service.close())

const page = async (path: string): Promise<string> => {
  const answer = await service.send("GET", path, { basic: owner, accept: "text/html" })
  if (answer.status !== 200) throw new Error(`${path} answered ${answer.status}: ${answer.text}`)
  return answer.text
}

/** What each entry of a page is about, in its order. */
const subjects = (text: string): ReadonlyArray<string> =>
  [...text.matchAll(/<li data-href="[^"]*"><p><a href="[^"]*">([^<]*)<\/a>/g)]
    .map(([, subject = ""]) => subject)

const hrefOf = (text: string, rel: string): string =>
  new RegExp(`<a href="([^"]+)" rel="${rel}"`).exec(text)?.[1]?.replaceAll("&amp;", "&") ?? ""

test("a page begins with the newest and leads back; from a cursor, with the oldest", async () => {
  const { href } = await service.open("order")
  const start = await service.send("GET", href, { basic: owner })
  for (const about of ["one", "two", "three"]) await service.deposit(href, about)
  const newest = await page(`${href}?limit=2`)
  expect(subjects(newest)).toEqual(["three", "two"])
  expect(newest).toContain("/live.js")
  const older = await page(hrefOf(newest, "next"))
  expect(subjects(older)).toEqual(["one"])
  expect(older).not.toContain("/live.js")
  expect(hrefOf(older, "next")).toBe("")
  expect(older).toContain(">The newest notifications</a>")
  expect(subjects(await page(hrefOf(older, "first")))).toEqual(["three", "two"])
  expect(newest).not.toContain("The newest notifications")
  const since = encodeURIComponent(start.xml.attributes["time"] ?? "")
  const later = await page(`${href}?limit=2&since=${since}`)
  expect(subjects(later)).toEqual(["one", "two"])
  expect(later).not.toContain("/live.js")
  expect(subjects(await page(hrefOf(later, "next")))).toEqual(["three"])
})

test.each([
  ["https://far.test/outgoing/alice", "alice at far.test"],
  ["https://far.test:8443/", "far.test:8443"],
  ["mailto:alice@far.test", "mailto:alice@far.test"],
  ["alice", "alice"]
])("the name of %s is %s", (uri, name) => {
  expect(uriName(uri)).toBe(name)
})

test("a list links to a message elsewhere by its host, and to none of this service", async () => {
  const { href } = await service.open("names")
  await service.deposit(href, "Elsewhere")
  const own = `${service.base}/content/none`
  await service.send("POST", href, { body: notification("Own", own), type: "text/xml+rss" })
  const text = await page(href)
  expect(text).toContain("<a href=\"http://example.org/m\">message at example.org</a>")
  expect(text).not.toContain(own)
})

test("a page shows no priority, tag or link that is none", async () => {
  const { href } = await service.open("odd")
  const odd = "<priority>constructor</priority><tags> , </tags><click>javascript:alert(1)</click>"
  const body = notification("Odd").replace("</item>", `${odd}</item>`)
  await service.send("POST", href, { body, type: "text/xml+rss" })
  const text = await page(href)
  expect(text).toContain("Odd</a>")
  expect(text).not.toMatch(/class="badge|class="tag|href="javascript/)
})

/** Publishes content, deposits a notification of it, and returns the notification's page. */
const pageOf = async (
  name: string,
  type: string,
  body: string | Uint8Array,
  headers: Readonly<Record<string, string>> = {}
): Promise<{ readonly content: string; readonly text: string }> => {
  const { href } = await service.open(name)
  const published = await service.send("POST", "/content", { basic: owner, type, body, headers })
  const content = published.header("location")
  const secret = headers["Message-Password"]
  const field = secret === undefined ? "" : `<password>${secret}</password>`
  const deposited = await service.send("POST", href, {
    body: notification("A message", content).replace("</item>", `${field}</item>`),
    type: "text/xml+rss"
  })
  return { content, text: await page(deposited.header("location")) }
}

test("the page of a notification shows its text, and the way back", async () => {
  const { content, text } = await pageOf("text", "text/plain", "\nOne <b>&amp;\ntwo")
  expect(text).toContain("<pre class=\"message\">\n\nOne &lt;b&gt;&amp;amp;\ntwo</pre>")
  expect(text).toContain(`<a href="${content}">The message by itself</a>`)
  expect(hrefOf(text, "up")).toBe(`${service.base}/mailboxes/text`)
})

test("the page of a notification shows a picture by its path", async () => {
  const { content, text } = await pageOf("picture", "image/png", new Uint8Array([1, 2, 3]))
  expect(text).toContain(`<img class="message" src="${new URL(content).pathname}" loading="lazy"`)
})

test("a cabinet links to a message of this service", async () => {
  const { content } = await pageOf("gathered", "text/plain", "gathered words")
  const body = `<cabinet><mailbox href="${service.base}/mailboxes/gathered"/></cabinet>`
  const cabinet = await service.send("POST", "/cabinets", { basic: owner, body })
  const listed = await page(cabinet.header("location"))
  expect(listed).toContain(`<a href="${content}">message at ${new URL(content).host}</a>`)
})

const password = { "Message-Password": "correct-horse-battery-staple" }

test.each([
  { name: "secret", what: "has a password", body: "hidden", headers: password },
  { name: "binary", what: "is not UTF-8", body: new Uint8Array([0xff, 0xfe]) }
])("the page only links to a message that $what", async ({ body, headers, name }) => {
  const { content, text } = await pageOf(name, "text/plain", body, headers)
  expect(text).not.toContain("class=\"message\"")
  expect(text).toContain(`<a href="${content}">Read the message</a>`)
})

test.each([
  {
    name: "named",
    type: "application/pdf",
    body: "%PDF",
    headers: { "Content-Disposition": "attachment; filename=\"bill <7>.pdf\"" },
    shown: "bill &lt;7&gt;.pdf"
  },
  { name: "unnamed", type: "application/zip; x=y", body: "PK", shown: "A file" },
  {
    name: "large",
    type: "text/plain",
    body: "x".repeat(shownMessageBytesMax + 1),
    shown: "A file"
  },
  {
    name: "large-picture",
    type: "image/png",
    body: new Uint8Array(shownPictureBytesMax + 1),
    shown: "A file"
  }
])(
  "the page names a file, and links to it: $name",
  async ({ body, headers, name, shown, type }) => {
    const { content, text } = await pageOf(name, type, body, headers)
    const facts = `${type.split(";")[0]}, ${sizeText(body.length)}`
    expect(text).toContain(`<p><b>${shown}</b>\n<span class="quiet">${facts}</span></p>`)
    expect(text).toContain(`<a href="${content}">Download</a>`)
    expect(text).not.toContain("<img")
  }
)

test("the page only links to a message that is gone, or that is elsewhere", async () => {
  const { href } = await service.open("gone")
  const published = await service.send("POST", "/content", {
    basic: owner,
    type: "text/plain",
    body: "x"
  })
  const content = published.header("location")
  const edit = /<([^>]+)>; rel="edit"/.exec(published.header("link"))?.[1] ?? ""
  for (const url of [content, "https://far.test/content/x"]) {
    const body = notification("A message", url)
    const deposited = await service.send("POST", href, { body, type: "text/xml+rss" })
    if (url === content) expect((await service.send("DELETE", edit)).status).toBe(204)
    expect(await page(deposited.header("location"))).toContain(
      `<a href="${url}">Read the message</a>`
    )
  }
})

test("the entity tag of a page that shows a message is one of the notification's", async () => {
  const { href } = await service.open("tags")
  const deposited = await service.send("POST", href, { type: "text/plain", body: "hello" })
  const at = deposited.header("location")
  const { etag } = await service.send("GET", at, { basic: owner, accept: "text/html" })
  const wrong = await service.send("DELETE", at, { basic: owner, headers: { "If-Match": "\"x\"" } })
  expect(wrong.status).toBe(412)
  const removed = await service.send("DELETE", at, { basic: owner, headers: { "If-Match": etag } })
  expect(removed.status).toBe(204)
})

/** The previews of a page, each with the subject of its entry, in their order. */
const previews = (text: string): ReadonlyArray<readonly [subject: string, preview: string]> =>
  text.split("<li data-href").slice(1).flatMap((row) => {
    const preview = /<p class="preview" dir="auto">([^<]*)<\/p>/.exec(row)?.[1]
    const shown = preview?.replaceAll("&quot;", "\"")
    return shown === undefined ? [] : [[subjects(`<li data-href${row}`)[0] ?? "", shown]]
  })

const depositText = async (href: string, body: string, type = "text/plain"): Promise<string> => {
  const deposited = await service.send("POST", href, { type, body })
  expect(deposited.status).toBe(202)
  return deposited.header("location")
}

const words = (count: number): string =>
  Array.from({ length: count }, (_, at) => `word${at}`).join(" ")

test("a page shows what follows the first line of a plain text, up to 200 characters", async () => {
  const { href } = await service.open("previews")
  const first = words(80)
  expect([...first].length).toBeGreaterThan(previewCharsMax)
  await depositText(href, "Only a line")
  await depositText(href, "\n  The mill \r\n\r\n grinds\tslowly <b>&\u0007\nvery slowly\n")
  await depositText(href, first)
  await depositText(href, `A\n${"x".repeat(previewCharsMax + 1)}`)
  await depositText(href, `Bytes\n${"ü ".repeat(previewReadBytesMax)}`)
  const found = previews(await page(href))
  expect(found).toEqual([
    ["Bytes", `${"ü ".repeat(previewCharsMax / 2 - 1)}ü…`],
    ["A", `${"x".repeat(previewCharsMax - 1)}…`],
    // The description is cut, and the preview goes on there.
    [first.slice(0, 200).trim(), expect.stringMatching(/^\S+ .* \S+…$/)],
    ["The mill", "grinds slowly &lt;b&gt;&amp; very slowly"]
  ])
  const [about = "", after = ""] = found[2] ?? []
  const shown = `${about}${after.slice(0, -1)}`.replaceAll(" ", "")
  expect(first.replaceAll(" ", "").startsWith(shown)).toBe(true)
  expect((await service.send("GET", href, { basic: owner })).text).not.toContain("grinds")
})

test("a page shows how the message of its own form begins", async () => {
  const { href } = await service.open("previewed-form")
  const body = new URLSearchParams({ description: "Tea", content: "It is on the table." })
  await depositText(href, String(body), "application/x-www-form-urlencoded")
  expect(previews(await page(href))).toEqual([["Tea", "It is on the table."]])
})

/** Publishes content, of an account or of nobody, and returns its address. */
const publish = async (
  type: string,
  body: string | Uint8Array,
  headers: Readonly<Record<string, string>> = {},
  basic?: string
): Promise<string> => {
  const account = basic === undefined ? {} : { basic }
  const published = await service.send("POST", "/content", { ...account, type, body, headers })
  expect(published.status).toBe(202)
  return published.header("location")
}

const depositLink = async (href: string, about: string, url: string): Promise<void> => {
  const body = notification(about, url)
  expect((await service.send("POST", href, { body, type: "text/xml+rss" })).status).toBe(202)
}

test("a page shows how a message begins that was published apart, or sent", async () => {
  const { href } = await service.open("apart")
  await depositLink(href, "Of nobody", await publish("text/plain", "The keys\nare here."))
  await depositLink(href, "Own", await publish("text/markdown", "# Keys", {}, owner))
  const item = "<description>Sent</description><content type=\"text/plain\">By relay</content>"
  const sent = await service.send("POST", "/outgoing/admin", {
    basic: owner,
    body: `<notification><to>${href}</to><item>${item}</item></notification>`
  })
  expect(sent.status).toBe(202)
  const form = new URLSearchParams({ to: href, description: "Composed", content: "By a form" })
  const composed = await service.send("POST", "/outgoing/admin", {
    basic: owner,
    type: "application/x-www-form-urlencoded",
    body: String(form)
  })
  expect([202, 303]).toContain(composed.status)
  await expect.poll(async () => previews(await page(href)).length, { timeout: 30_000 }).toBe(4)
  const found = previews(await page(href))
  expect(found.slice(2)).toEqual([["Own", "# Keys"], ["Of nobody", "The keys are here."]])
  expect(new Set(found.slice(0, 2))).toEqual(
    new Set([["Sent", "By relay"], ["Composed", "By a form"]])
  )
  // No program pays for previews, or gets one.
  for (const accept of ["application/json", "text/xml", "application/atom+xml"]) {
    expect((await service.send("GET", href, { basic: owner, accept })).text)
      .not.toContain("are here")
  }
})

test("a page shows the JSON of a webhook on one line", async () => {
  const { href } = await service.open("hooks", "<webhook>Order {/id}</webhook>")
  const order = { id: 7, note: "a,b: \"c\"", lines: ["x", "y"], sum: 1.5 }
  await depositText(href, JSON.stringify(order, undefined, 2), "application/json")
  await depositText(href, `{"id":8,"note":"${"long ".repeat(1000)}"}`, "application/json")
  const [[, second = ""] = [], [, first = ""] = []] = previews(await page(href))
  expect(first).toBe(String.raw`{"id": 7, "note": "a,b: \"c\"", "lines": ["x", "y"], "sum": 1.5}`)
  expect(second).toMatch(/^\{"id": 8, "note": "long (?:long )+long…$/)
})

test("a page shows nothing of a message with a password, or that is none", async () => {
  const { href } = await service.open("unpreviewed")
  const locked = "<item><description>Locked</description><password>mellon</password>" +
    "<content type=\"text/plain\">Speak, friend</content></item>"
  await service.send("POST", href, {
    body: `<notification>${locked}</notification>`,
    type: "text/xml+rss"
  })
  const secret = await publish("text/plain", "hidden", password)
  const missing = `${service.base}/content/none`
  await depositLink(href, "Secret", secret)
  await depositLink(href, "Missing", missing)
  await depositLink(href, "Binary", await publish("text/plain", new Uint8Array([0xff, 0xfe])))
  await depositLink(href, "Empty", await publish("text/plain", ""))
  const text = await page(href)
  expect(subjects(text)).toEqual(["Empty", "Binary", "Missing", "Secret", "Locked"])
  expect(previews(text)).toEqual([])
  expect(marks(text)).toEqual([undefined, undefined, undefined, undefined, undefined])
})

/** What each row says of a file, in their order. */
const marks = (text: string): ReadonlyArray<string | undefined> =>
  text.split("<li data-href").slice(1)
    .map((row) => /&nbsp;· <svg class="icon"[^]*?<\/svg>([^<]*)</.exec(row)?.[1]?.trim())

test("a row marks a file, also one that came in its notification, by type and size", async () => {
  const { href } = await service.open("attached")
  for (const type of ["application/pdf; x=y", "image/png", "text/html"]) {
    const item = `<item><description>${type}</description><content type="${type}">%PDF</content>`
    const body = `<notification>${item}</item></notification>`
    const deposited = await service.send("POST", href, { body, type: "text/xml+rss" })
    expect(deposited.status).toBe(202)
  }
  await depositLink(href, "A picture", await publish("image/webp", new Uint8Array([1, 2, 3])))
  const long = await publish("text/plain", "x".repeat(shownMessageBytesMax + 1))
  await depositLink(href, "A long text", long)
  expect(marks(await page(href))).toEqual([
    `text/plain, ${sizeText(shownMessageBytesMax + 1)}`,
    "image/webp, 3 B",
    "text/html, 4 B",
    "image/png, 4 B",
    "application/pdf, 4 B"
  ])
})

/** The page once so many rows have previews: what a busy node has not read in time is left out. */
const pageWithPreviews = (path: string, count: number): Promise<string> =>
  eventually(`${count} rows of ${path} have previews`, async () => {
    const text = await page(path)
    return previews(text).length === count ? text : undefined
  })

test("every page shows the previews of its first rows, and a found one, too", async () => {
  const { href } = await service.open("many-previews")
  const start = await service.send("GET", href, { basic: owner })
  const count = previewRowsMax + 2
  for (let at = 1; at <= count; at += 1) await depositText(href, `No ${at}\nText ${at}`)
  const newest = await pageWithPreviews(`${href}?limit=${count}`, previewRowsMax)
  expect(subjects(newest)).toHaveLength(count)
  expect(previews(newest).map(([subject]) => subject)).toEqual(
    subjects(newest).slice(0, previewRowsMax)
  )
  const next = hrefOf(await page(`${href}?limit=${count - 2}`), "next")
  const older = await pageWithPreviews(next, 2)
  expect(previews(older)).toEqual([["No 2", "Text 2"], ["No 1", "Text 1"]])
  const since = encodeURIComponent(start.xml.attributes["time"] ?? "")
  const oldest = await pageWithPreviews(`${href}?since=${since}&limit=${count}`, previewRowsMax)
  expect(previews(oldest).map(([subject]) => subject)).toEqual(
    subjects(oldest).slice(0, previewRowsMax)
  )
  const found = await pageWithPreviews(`${href}?q=${encodeURIComponent(`No ${count}`)}`, 1)
  expect(previews(found)).toEqual([[`No ${count}`, `Text ${count}`]])
})

test("a page shows no preview of a message that was removed after it was shown", async () => {
  const { href } = await service.open("taken-down")
  const at = await depositText(href, "Libel\nabout somebody")
  // The third page may be a cached one.
  for (let times = 0; times < 3; times += 1) {
    expect(previews(await page(href))).toEqual([["Libel", "about somebody"]])
  }
  const { text } = await service.send("GET", at, { basic: owner })
  const content = /<url>([^<]+)<\/url>/.exec(text)?.[1] ?? ""
  expect((await service.send("DELETE", content, { basic: owner })).status).toBe(204)
  expect(previews(await page(href))).toEqual([])
})

test("the entity tag of a page with previews is one of the mailbox's", async () => {
  const { href } = await service.open("tagged")
  await depositText(href, "Tag\nwith a preview")
  const { etag } = await service.send("GET", href, { basic: owner, accept: "text/html" })
  const body = "<mailbox><title>Tagged</title></mailbox>"
  const put = (tag: string) =>
    service.send("PUT", href, { basic: owner, body, headers: { "If-Match": tag } })
  expect((await put("\"x\"")).status).toBe(412)
  expect((await put(etag)).status).toBe(200)
})

test("a page that removes asks before, and only shows what it is", async () => {
  const { href } = await service.open("asked")
  const at = await depositText(href, "Tea\nis on the table")
  const list = await page(href)
  const asking = `<form action="${at}" method="get"`
  expect(list).toContain(`${asking}><input type="hidden" name="remove" value="true">`)
  const asked = await page(`${at}?remove=true`)
  expect(asked).toContain("<h1>Remove “Tea”?</h1>")
  expect(asked).toContain(`<form action="${at}" method="post">`)
  expect(asked).toContain("name=\"method\" value=\"delete\"")
  expect(asked).toContain(`<a href="${href}?read=">Keep it</a>`)
  expect(asked).not.toContain("<a href=\"/content/")
  // Who keeps it has not read it.
  expect(await page(href)).toContain("● unread")
  // Programs get the notification, as without the question.
  const xml = await service.send("GET", `${at}?remove=true`, { basic: owner })
  expect(xml.xml.name).toBe("notification")
  const own = await page(at)
  expect(own).toContain(`${asking} data-list="${href}?read=">`)
  expect(own).toContain("/list.js")
  expect(own).not.toContain("danger")
  const removed = await service.send("POST", at, {
    basic: owner,
    accept: "text/html",
    type: "application/x-www-form-urlencoded",
    body: "method=delete"
  })
  expect([removed.status, removed.header("location")]).toEqual([303, `${href}?read=`])
  const gone = await service.send("GET", `${at}?remove=true`, { basic: owner, accept: "text/html" })
  expect(gone.status).toBe(410)
})
