/** Read marks: which notifications the readers of a mailbox have seen, on all their devices. */
import { afterAll, beforeAll, expect, test } from "vitest"
import { childrenOf } from "../../http/formats/xml/index.ts"
import { childText, itemOf, type Mailboxes, owner, startMailboxes,
  timeOf } from "./mailbox-harness.ts"
import { eventually } from "./receiver.ts"

let service: Mailboxes

beforeAll(async () => {
  service = await startMailboxes()
})

afterAll(() => service.close())

/** What is marked as read in a mailbox, in its order. */
const readIn = async (href: string, basic = owner): Promise<ReadonlyArray<string>> => {
  const listing = await service.send("GET", href, { basic })
  return childrenOf(listing.xml, "notification")
    .filter(({ attributes }) => attributes["read"] === "true")
    .map((one) => childText(itemOf(one), "description"))
}

/** Opens a mailbox with these notifications; returns the URIs of all. */
const filled = async (name: string, ...abouts: ReadonlyArray<string>) => {
  const opened = await service.open(name)
  const deposited = []
  for (const about of abouts) {
    deposited.push((await service.deposit(opened.href, about)).header("location"))
  }
  const [one = "", two = ""] = deposited
  return { ...opened, one, two }
}

const visit = (path: string, headers: Readonly<Record<string, string>> = {}) =>
  service.send("GET", path, { basic: owner, accept: "text/html", headers })

test("the page of a notification marks it, for all readers", async () => {
  const { href, one, password, two } = await filled("opened", "one", "two")
  const before = await visit(href)
  expect(before.text.match(/<b>● unread<\/b>/g)).toHaveLength(2)
  // Neither what a program reads, nor what another site makes a browser read.
  expect((await service.send("GET", two, { basic: owner })).status).toBe(200)
  expect((await visit(two, { "Sec-Fetch-Site": "cross-site" })).status).toBe(200)
  const shown = await visit(one)
  expect(shown.text).toContain("Mark as unread")
  const byPassword = `reader:${password}`
  await eventually(
    "one is read",
    async () => (await readIn(href, byPassword)).includes("one") ? true : undefined
  )
  expect(await readIn(href)).toEqual(["one"])
  const after = await visit(href)
  expect(after.text.match(/<b>● unread<\/b>/g)).toHaveLength(1)
  expect(after.etag).not.toBe(before.etag)
  expect((await service.send("GET", one, { basic: owner })).xml.attributes["read"]).toBe("true")
})

test("a program sets and removes a mark", async () => {
  const { href, one, password, shared } = await filled("marked", "one", "two")
  const mark = (method: string, basic = owner) => service.send(method, `${one}/read`, { basic })
  expect((await mark("PUT")).status).toBe(204)
  expect(await readIn(href)).toEqual(["one"])
  // A listing that was cached before shows the next mark, too.
  for (let turn = 0; turn < 3; turn++) await readIn(href)
  expect((await mark("DELETE", `reader:${password}`)).status).toBe(204)
  expect(await readIn(href)).toEqual([])
  const bySecret = one.replace(href, shared)
  expect((await service.send("PUT", `${bySecret}/read`)).status).toBe(204)
  expect(await readIn(href)).toEqual(["one"])
  expect((await mark("PUT", service.bob)).status).toBe(403)
  const unknown = `${href}/notifications/9-${"x".repeat(22)}/read`
  expect((await service.send("PUT", unknown, { basic: owner })).status).toBe(404)
  expect((await service.send("DELETE", one, { basic: owner })).status).toBe(204)
  expect((await mark("PUT")).status).toBe(410)
})

const upTo = (time: string) => ({ basic: owner, body: `<read><time>${time}</time></read>` })

test("all are marked up to a time, and not what came later", async () => {
  const { href } = await filled("up-to", "one", "two")
  const time = timeOf(await service.send("GET", href, { basic: owner }))
  await service.deposit(href, "three")
  expect((await service.send("PUT", `${href}/read`, upTo(time))).status).toBe(204)
  expect(await readIn(href)).toEqual(["one", "two"])
  const other = await filled("up-to-other", "one", "two")
  const theirs = timeOf(await service.send("GET", other.href, { basic: owner }))
  expect((await service.send("PUT", `${href}/read`, upTo(theirs))).status).toBe(400)
  expect((await service.send("PUT", `${href}/read`, upTo("soon"))).status).toBe(422)
  expect(await readIn(href)).toEqual(["one", "two"])
})

test("the buttons of the pages mark all as read, and one as unread", async () => {
  const { href, one } = await filled("buttons", "one", "two")
  const page = await visit(href)
  const time = /name="time" value="([^"]+)"/.exec(page.text)?.[1] ?? ""
  const form = { basic: owner, type: "application/x-www-form-urlencoded" }
  const all = await service.send("POST", `${href}/read`, {
    ...form,
    body: new URLSearchParams({ time }).toString()
  })
  expect([all.status, all.header("location")]).toEqual([303, `${href}?read=`])
  expect(await readIn(href)).toEqual(["one", "two"])
  expect((await visit(href)).text).not.toContain("Mark all as read")
  const unread = await service.send("POST", `${one}/read`, { ...form, body: "method=delete" })
  expect(unread.status).toBe(303)
  expect(await readIn(href)).toEqual(["two"])
})
