/** Failure reports: where they appear, and who chooses the mailbox that receives them. */
import { createServer, type Server } from "node:http"
import type { AddressInfo } from "node:net"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { readersReportsPerDayMax } from "../../actors/limits.ts"
import { childOf, childrenOf, childText } from "../../http/formats/xml/index.ts"
import { newBrowser } from "../actors/web-push.ts"
import { owner } from "./mailbox-harness.ts"
import { eventually, formType, type Registrations, startRegistrations,
  statusOf } from "./registrations-harness.ts"

let service: Registrations
let rejecting: Server
let origin = ""

beforeAll(async () => {
  service = await startRegistrations()
  // A push service that rejects every push for good, and a recipient that is no mailbox.
  rejecting = createServer((request, response) => {
    request.resume()
    response.writeHead(403).end()
  })
  await new Promise<void>((resolve) => rejecting.listen(0, "127.0.0.1", resolve))
  // The address of a TCP server is an object.
  origin = `http://127.0.0.1:${(rejecting.address() as AddressInfo).port}`
})
afterAll(async () => {
  await service.close()
  rejecting.closeAllConnections()
  await new Promise((resolve) => rejecting.close(resolve))
})

const send = (...[method, to, options = {}]: Parameters<Registrations["send"]>) =>
  service.send(method, to, { basic: owner, ...options })

const account = () => `${service.base}/accounts/admin`

const choose = (name: string) =>
  send("PUT", account(), {
    body: `<account><failure-reports>${name}</failure-reports></account>`
  })

/** The notifications in a mailbox, once the condition holds. */
const found = async (
  mailbox: string,
  isDone: (urls: ReadonlyArray<string | undefined>) => boolean,
  basic = owner
) => {
  const read = async () =>
    childrenOf((await send("GET", mailbox, { basic })).xml, "notification").map((one) => {
      const item = childOf(one, "item")
      if (item === undefined) throw new Error("there is no item")
      return { description: childText(item, "description"), url: childText(item, "url") }
    })
  return eventually(read, (items) => isDone(items.map(({ url }) => url)))
}

/** The reports that a mailbox has once it has that of this failure: others came before it. */
const reportsUpTo = (mailbox: string, last: string) => found(mailbox, (urls) => urls.includes(last))

/** A registration of a browser at this URI of a mailbox, whose first push is rejected. */
const suspended = async (mailbox: string, at = mailbox, basic = owner): Promise<string> => {
  const { auth, p256dh } = await newBrowser()
  const endpoint = `${origin}/secret/${p256dh.slice(2, 12)}`
  const made = await service.register(at, "", {
    basic,
    body: JSON.stringify({ endpoint, keys: { p256dh, auth } }),
    type: "application/json"
  })
  const href = made.header("location")
  // The mailbox recognizes a repetition, and pushes none.
  await service.deposit(mailbox, `for ${p256dh}`)
  await service.until(href, (answer) => statusOf(answer) === "suspended")
  return href
}

/** An outgoing notification that no recipient takes. */
const undelivered = (...paths: ReadonlyArray<string>): Promise<string> =>
  undeliveredOf({ name: "admin", basic: owner }, ...paths)

const undeliveredOf = async (
  { basic, name }: { readonly name: string; readonly basic: string },
  ...paths: ReadonlyArray<string>
): Promise<string> => {
  const to = paths.map((path) => `<to>${origin}/${path}</to>`).join("")
  const item = "<item><description>d</description><url>http://example.org/m</url></item>"
  const body = `<notification>${to}${item}</notification>`
  const sent = await send("POST", `${service.base}/outgoing/${name}`, { basic, body })
  const href = sent.header("location")
  await eventually(
    async () => statusOf(await send("GET", href, { basic })),
    (status) => status === "failed"
  )
  return href
}

/** Creates an account; its credentials, and the name of its mailbox for reports. */
const join = async (name: string, settings = "", headers = {}) => {
  const body = `<account><name>${name}</name>${settings}</account>`
  const made = await send("POST", `${service.base}/accounts`, { body, headers })
  expect(made.status).toBe(201)
  return {
    name,
    basic: `${name}:${made.child("token")}`,
    reports: made.child("failure-reports")
  }
}

const ownName = /^reports-[0-9a-f]{32}$/

const reportsOf = async (name: string): Promise<string | undefined> =>
  (await send("GET", `${service.base}/accounts/${name}`)).child("failure-reports")

describe("failure reports", () => {
  it("of an account that has never chosen open a mailbox of its own", async () => {
    // As the first accounts of a store, those of an issuer, and those of earlier versions.
    expect(await reportsOf("admin")).toBeUndefined()
    const page = await send("GET", account(), { accept: "text/html" })
    expect(page.text).toContain("to a mailbox of their own, which the first report opens.")
    const href = await undelivered("first")
    const name = await eventually(() => reportsOf("admin"), (one) => one !== undefined)
    expect(name).toMatch(ownName)
    const mailbox = `${service.base}/mailboxes/${name}`
    await eventually(() => send("GET", mailbox), ({ status }) => status === 200)
    expect((await found(mailbox, (urls) => urls.includes(href))).map(({ url }) => url))
      .toEqual([href])
    // The next one goes there, too.
    const next = await undelivered("second")
    await reportsUpTo(mailbox, next)
    expect(await reportsOf("admin")).toBe(name)
  })

  it("go to a mailbox that is opened with the account, and is its own", async () => {
    const { basic, name, reports = "" } = await join("erin")
    expect(reports).toMatch(ownName)
    const mailbox = `${service.base}/mailboxes/${reports}`
    expect((await send("GET", mailbox, { basic })).status).toBe(200)
    const listed = await send("GET", `${service.base}/mailboxes`, { basic })
    expect(listed.text).toContain(`href="${mailbox}"`)
    expect((await send("GET", mailbox, { basic: service.bob })).status).toBe(403)
    // A stranger could imitate a report.
    const item = "<item><description>d</description><url>http://a.test/</url></item>"
    const body = `<notification>${item}</notification>`
    expect((await service.send("POST", mailbox, { body })).status).toBe(401)
    const href = await undeliveredOf({ basic, name }, "of-erin")
    const isThere = (urls: ReadonlyArray<string | undefined>) => urls.includes(href)
    expect(await found(mailbox, isThere, basic)).toMatchObject([
      { description: expect.stringMatching(/^“d” was not delivered/), url: href }
    ])
  })

  it("are the same for a repeated request, and none if it says so", async () => {
    const headers = { "Idempotency-Key": "\"join-frank-once-and-for-all\"" }
    const once = await join("frank", "", headers)
    expect(await join("frank", "", headers)).toEqual(once)
    const none = "<failure-reports>none</failure-reports>"
    const grace = await join("grace", none)
    expect(grace.reports).toBeUndefined()
    const { basic } = grace
    const listed = await send("GET", `${service.base}/mailboxes`, { basic })
    expect(childrenOf(listed.xml, "mailbox")).toEqual([])
    // Whatever fails, no mailbox is opened.
    await undeliveredOf(grace, "of-grace")
    const page = await send("GET", `${service.base}/accounts/grace`, { accept: "text/html" })
    expect(page.text).toContain("to no mailbox: only the pages show what has failed for good.")
    const body = "<account><name>heidi</name><failure-reports>inbox</failure-reports></account>"
    const refused = await send("POST", `${service.base}/accounts`, { body })
    expect([refused.status, refused.text]).toEqual([
      422,
      expect.stringContaining("failure-reports")
    ])
  })

  it("say which registration was suspended, and why", async () => {
    const { href: reports } = await service.open("suspensions")
    expect((await choose("suspensions")).child("failure-reports")).toBe("suspensions")
    const { href: mailbox } = await service.open("watched")
    const href = await suspended(mailbox)
    const [report] = await reportsUpTo(reports, href)
    expect(report?.description).toMatch(
      /^Pushes to http:\/\/127\.0\.0\.1:\d+\/… are suspended: .*403.*, since \d{4}-.*renews it\.$/
    )
    expect(report?.description).not.toContain("secret")
  })

  it("say which notification was not delivered, once for all of its recipients", async () => {
    const { href: reports } = await service.open("undelivered")
    await choose("undelivered")
    const href = await undelivered("a", "b", "c")
    const [report] = await reportsUpTo(reports, href)
    expect(report?.description).toMatch(
      /^“d” was not delivered to http:[^:]*:\d+\/…: .*403.* 1 of 3 recipients has failed; /
    )
    const marker = await undelivered("d")
    const listed = (await reportsUpTo(reports, marker)).map(({ url }) => url)
    expect(listed.toSorted()).toEqual([href, marker].toSorted())
    // A retry that fails is another failure.
    const count = (urls: ReadonlyArray<string | undefined>) =>
      urls.filter((url) => url === href).length
    await eventually(
      async () => {
        await send("POST", `${href}/retry`)
        return found(reports, () => true)
      },
      (items) => count(items.map(({ url }) => url)) > 1
    )
  })

  it("cause neither pushes nor others where they are pushed to a callback that fails", async () => {
    const { href: reports } = await service.open("loop")
    await choose("loop")
    // The first push of this mailbox is rejected: its report is deposited here, too.
    const href = await suspended(reports)
    await reportsUpTo(reports, href)
    // Whoever lifts the suspension, the report is pushed, is rejected, and is not reported again.
    await send("PUT", href)
    await service.until(href, (answer) => statusOf(answer) === "suspended")
    const { href: mailbox } = await service.open("beside-loop")
    const marker = await suspended(mailbox)
    const urls = (await reportsUpTo(reports, marker)).map(({ url }) => url)
    expect(urls.toSorted()).toEqual([href, marker, "http://example.org/m"].toSorted())
  })

  it("leave room for those of the owner, whatever readers of a mailbox cause", async () => {
    const { href: reports } = await service.open("shares")
    await choose("shares")
    const { href: mailbox, shared } = await service.open("shared-with-bob")
    // One more than their share has.
    for (let n = 0; n <= readersReportsPerDayMax; n++) await suspended(mailbox, shared, service.bob)
    const own = await suspended(mailbox)
    const items = await found(
      reports,
      (urls) => urls.includes(own) && urls.length > readersReportsPerDayMax
    )
    expect(items).toHaveLength(readersReportsPerDayMax + 1)
    const last = items.filter(({ description }) => description?.includes("There may be more"))
    expect(last).toHaveLength(1)
  })

  it("go to none if the account wants none, and to one of the account only", async () => {
    const none = await send("PUT", account(), { body: "<account/>" })
    expect([none.status, none.child("failure-reports")]).toEqual([200, undefined])
    const refused = await choose("not-there")
    expect([refused.status, refused.text]).toEqual([
      422,
      expect.stringContaining("failure-reports must name a mailbox of admin")
    ])
    await service.open("mine")
    expect((await choose("mine")).status).toBe(200)
    const json = await send("GET", account(), { accept: "application/json" })
    expect(JSON.parse(json.text)).toMatchObject({ name: "admin", "failure-reports": "mine" })
    // The document of GET may be sent back, and a condition holds for one state only.
    const headers = { "If-Match": json.etag }
    const type = "application/json"
    const same = await send("PUT", account(), { type, body: json.text })
    expect([same.status, same.text])
      .toEqual([200, expect.stringContaining("<failure-reports>mine<")])
    expect((await send("PUT", account(), { body: "<account/>", headers })).status).toBe(200)
    expect((await send("PUT", account(), { body: "<account/>", headers })).status).toBe(412)
  })

  it("are chosen for nobody else's mailbox, and by nobody else", async () => {
    await service.open("of-admin")
    const body = "<account><failure-reports>of-admin</failure-reports></account>"
    const bobs = `${service.base}/accounts/bob`
    const { bob: basic } = service
    expect((await send("PUT", bobs, { basic, body })).status).toBe(422)
    expect((await send("PUT", account(), { basic, body })).status).toBe(403)
  })

  it("are chosen on the page, too", async () => {
    await service.open("on-page")
    const fields = (name: string) =>
      new URLSearchParams({ method: "put", "failure-reports": name }).toString()
    const accept = "text/html"
    const change = (name: string) =>
      send("POST", account(), { accept, type: formType, body: fields(name) })
    const changed = await change("on-page")
    expect([changed.status, changed.header("location")]).toEqual([303, account()])
    const page = (await send("GET", account(), { accept })).text
    expect(page).toMatch(/<dt>Failure reports<\/dt><dd>to <a href="\/mailboxes\/on-page"/)
    expect(page).toMatch(/<input [^>]*value="on-page"[^>]* name="failure-reports"/)
    const choice = "<a href=\"#failure-reports-failure-reports\">Choose a mailbox</a>"
    expect(page).not.toContain(choice)
    await change("")
    const { text } = await send("GET", account(), { accept })
    expect(text).toContain(choice)
    expect(text).toContain("id=\"failure-reports-failure-reports\"")
    const wrong = await change("no-page")
    expect([wrong.status, wrong.text]).toEqual([422, expect.stringContaining("value=\"no-page\"")])
  })
})
