/** Content, mailboxes, sending and cabinets through the client, with the running service. */
import { afterAll, beforeAll, expect, it } from "vitest"
import { type Client, Conflict, connect, Forbidden, Gone, NotFound, PreconditionFailed,
  Unauthenticated, Unprocessable } from "../../client/index.ts"
import { all, type Here, rejection, startHere, take } from "./services.ts"

let here: Here
let url = ""
let admin: Client
beforeAll(async () => {
  here = await startHere()
  url = here.url
  admin = here.admin
})
afterAll(() => here.close())

it("publishes content, reads it, overwrites it and removes it", async () => {
  const { edit, href, password } = await admin.publish("Grüße", { password: "generate" })
  expect(password).toMatch(/^[\x21-\x7e]{16,}$/)
  const stranger = connect({ url })
  const refused = await rejection(stranger.get(href))
  expect(refused).toBeInstanceOf(Unauthenticated)
  expect(refused).toMatchObject({ status: 401, type: `${url}/problems/unauthenticated` })
  const reading = { password }
  const content = await stranger.get({ url: href, password })
  expect(content).toMatchObject({ type: "text/plain; charset=utf-8", lengthBytes: 7 })
  expect(await content.response.text()).toBe("Grüße")
  const part = await admin.get(href, { ...reading, range: { from: 0, to: 1 } })
  expect([part.response.status, await part.response.text()]).toEqual([206, "Gr"])

  const stale = await rejection(admin.replace(edit, "x", { ifMatch: "\"another\"" }))
  expect(stale).toBeInstanceOf(PreconditionFailed)
  const bytes = Uint8Array.of(0, 1, 254, 255)
  const etag = await admin.replace(edit, bytes, { ifMatch: content.etag })
  const again = await admin.get(href, reading)
  expect(again).toMatchObject({ type: "application/octet-stream", etag })
  expect(new Uint8Array(await again.response.arrayBuffer())).toEqual(bytes)
  await admin.report(href, { status: "retrieved", description: "seen", ...reading })
  expect(await admin.receipts(edit)).toMatchObject([{ status: "retrieved", description: "seen" }])
  // More than one page.
  for (let n = 0; n < 100; n++) await admin.report(href, { status: "received", ...reading })
  expect(await admin.receipts(edit)).toHaveLength(101)
  await admin.remove(edit)
  await admin.remove(edit)
  expect(await rejection(admin.get(href))).toBeInstanceOf(Gone)
})

it("publishes blobs and streams", async () => {
  const blob = await admin.publish(new Blob(["{}"], { type: "application/json" }))
  expect((await admin.get(blob.href)).type).toBe("application/json")
  const make = () => new Blob(["streamed"]).stream()
  for (const body of [make(), make]) {
    const { href } = await admin.publish(body, { contentType: "text/plain" })
    expect(await (await admin.get(href)).response.text()).toBe("streamed")
  }
})

it("opens a mailbox, deposits in it and reads it in pages", async () => {
  const { href, mailbox, password, shared } = await admin.openMailbox({
    name: "paged",
    title: "Paged & more",
    retention: "P1D"
  })
  expect(href).toBe(`${url}/mailboxes/paged`)
  expect(await rejection(admin.openMailbox({ name: "paged" }))).toBeInstanceOf(Conflict)
  const stranger = connect({ url })
  for (let n = 0; n < 5; n++) {
    const input = { description: `number ${n}`, url: "http://sender.test/", extra: { n: `${n}` } }
    const location = await stranger.mailbox("paged").deposit(input)
    expect(location).toContain(`${href}/notifications/`)
  }
  const first = await mailbox.read({ limit: 2 })
  expect(first).toMatchObject({ href, title: "Paged & more", more: true })
  expect(first.notifications.map(({ item }) => item["n"])).toEqual(["0", "1"])
  const rest = await mailbox.read({ after: first.cursor })
  expect(rest.notifications.map(({ description }) => description))
    .toEqual(["number 2", "number 3", "number 4"])
  expect(rest.more).toBe(false)
  for (
    const reader of [mailbox, stranger.mailbox("paged", { password }), stranger.mailbox(shared)]
  ) {
    expect(await all(reader.notifications({ pageSize: 2 }))).toHaveLength(5)
  }
  expect(await rejection(stranger.mailbox("paged").read())).toBeInstanceOf(Unauthenticated)
  const [one] = first.notifications
  if (one === undefined) throw new Error("it was empty")
  expect(await mailbox.get(one.href)).toEqual(one)
  await stranger.mailbox("paged", { password }).remove(one)
  await mailbox.remove(one)
  expect(await rejection(mailbox.get(one.href))).toBeInstanceOf(Gone)
  expect(await all(admin.mailboxes())).toMatchObject([{ href, notifications: 4 }])
})

it("deposits and sends a priority, tags and what to open by a click", async () => {
  const { href, mailbox } = await admin.openMailbox()
  const labels = { priority: 4, tags: ["disk", "nas"], click: "http://a.test/d" } as const
  const input = { description: "labelled", url: "http://sender.test/", ...labels }
  await mailbox.deposit(input)
  const sent = await admin.send({ ...input, to: href })
  await sent.wait()
  await sent.delete()
  await mailbox.deposit({ description: "bare", url: "http://sender.test/", tags: [] })
  const items = (await mailbox.read()).notifications.map(({ item }) => item)
  const shown = { priority: "4", tags: "disk,nas", click: "http://a.test/d" }
  expect(items).toMatchObject([shown, shown, { description: "bare" }])
  expect(Object.keys(items.at(2) ?? {}).toSorted()).toEqual(["description", "url"])
})

it("waits for a page", async () => {
  const { mailbox } = await admin.openMailbox()
  const { cursor } = await mailbox.read()
  const waiting = mailbox.next(cursor)
  await mailbox.deposit({ description: "late", url: "http://sender.test/" })
  expect((await waiting).notifications).toMatchObject([{ description: "late" }])
})

it("changes settings and secrets, and deletes a mailbox", async () => {
  const { mailbox, password } = await admin.openMailbox({ name: "changing", receipts: "received" })
  expect(await mailbox.settings()).toMatchObject({ receipts: "received", deposit: "anyone" })
  const wanted = { title: "Other", deposit: "accounts", fetchLimitBytes: 12 } as const
  await mailbox.configure(wanted)
  expect(await mailbox.settings()).toMatchObject({ ...wanted, receipts: "none" })
  const renewed = await mailbox.renewSecrets()
  expect(renewed.password).not.toBe(password)
  const byOld = here.asAdmin(url).mailbox("changing", { password })
  expect(await rejection(byOld.read())).toBeInstanceOf(Unauthenticated)
  await admin.mailbox("changing", renewed).read()
  const broken = await rejection(mailbox.configure({ retention: "a month" }))
  expect(broken).toBeInstanceOf(Unprocessable)
  expect(broken).toMatchObject({ detail: expect.stringContaining("retention") })
  await mailbox.delete()
  expect(await rejection(mailbox.read())).toBeInstanceOf(Gone)
  expect(await rejection(admin.mailbox("nowhere").read())).toBeInstanceOf(NotFound)
})

it("inlines content, as text and as bytes", async () => {
  const { mailbox } = await admin.openMailbox()
  const bytes = Uint8Array.from({ length: 256 }, (_, n) => n)
  await mailbox.deposit({ description: "text", content: { type: "text/plain", data: "<&>" } })
  await mailbox.deposit({ description: "bytes", content: { type: "image/x", data: bytes } })
  const [text, image] = (await mailbox.read()).notifications
  expect(await (await admin.get(text?.url ?? "")).response.text()).toBe("<&>")
  const { response, type } = await admin.get(image?.url ?? "")
  expect([type, new Uint8Array(await response.arrayBuffer())]).toEqual(["image/x", bytes])
})

it("sends, waits until all recipients have ended, retries and deletes", async () => {
  const { href, mailbox } = await admin.openMailbox({ name: "recipient" })
  const missing = `${url}/mailboxes/comes-later`
  const seen: Array<string> = []
  const sent = await admin.send({
    to: [href, missing],
    from: true,
    description: "To both",
    url: "http://sender.test/"
  })
  const status = await sent.wait({ onChange: ({ status }) => seen.push(status) })
  expect(status.status).toBe("failed")
  expect(status.recipients).toMatchObject([
    { href, status: "success", attempts: 1, code: 202 },
    { href: missing, status: "failed", code: 404, problem: expect.any(String) }
  ])
  expect(seen.at(-1)).toBe("failed")
  const { attempts, dropped } = await sent.attempts()
  expect(dropped).toBe(0)
  const bare = { number: 1, durationMs: expect.any(Number), requestHeaders: [], answer: undefined }
  expect(attempts).toHaveLength(2)
  expect(attempts).toEqual(expect.arrayContaining([
    expect.objectContaining({ ...bare, recipient: href, code: 202, follows: "done" }),
    expect.objectContaining({ ...bare, recipient: missing, code: 404, follows: "permanent" })
  ]))
  expect((await mailbox.read()).notifications)
    .toMatchObject([{ description: "To both", from: `${url}/outgoing/admin` }])
  await admin.openMailbox({ name: "comes-later" })
  await sent.retry()
  const again = await sent.wait()
  expect(again.status).toBe("sent")
  expect(await rejection(sent.retry())).toBeInstanceOf(Conflict)
  await sent.retry({ to: href })
  expect((await sent.wait()).recipients).toMatchObject([{ attempts: 2 }, { attempts: 2 }])
  expect(await rejection(sent.retry({ to: [href, "http://a.test/"] }))).toBeInstanceOf(
    Unprocessable
  )
  expect(await all(admin.outgoing.list({ status: "sent" }))).toMatchObject([{ href: sent.href }])
  expect(await admin.outgoing.retrySince("2020-01-01T00:00:00Z"))
    .toEqual({ notifications: 0, recipients: 0, refused: 0 })
  expect(await admin.outgoing.retrySince("2020-01-01T00:00:00Z", "2020-01-02T00:00:00Z"))
    .toEqual({ notifications: 0, recipients: 0, refused: 0 })
  expect(await admin.outgoing.retrySince("2020-01-01T00:00:00Z", undefined, { to: href }))
    .toEqual({ notifications: 1, recipients: 1, refused: 0 })
  expect((await sent.wait()).recipients).toMatchObject([{ attempts: 3 }, { attempts: 2 }])
  await sent.delete()
  expect(await rejection(sent.status())).toBeInstanceOf(Gone)
  expect(await rejection(admin.send({ to: "mailto:x", description: "x", url: "http://x.test/" })))
    .toMatchObject({ status: 422, extensions: { rule: "to" } })
})

it("replaces and withdraws what was sent", async () => {
  const { href, mailbox } = await admin.openMailbox()
  const message = { description: "First", url: "http://sender.test/first" }
  const sent = await admin.send({ to: href, ...message })
  await sent.wait()
  const [first] = (await mailbox.read()).notifications
  const idempotencyKey = "replaces-the-first-one"
  for (let n = 0; n < 2; n++) {
    const second = { from: true, description: "Second", url: "http://sender.test/second" }
    const progress = await sent.replace(second, { idempotencyKey })
    expect(progress).toMatchObject({ href: sent.href, replaced: expect.any(String) })
    expect(progress.withdrawn).toBeUndefined()
  }
  await sent.wait()
  expect((await mailbox.read()).notifications).toMatchObject([{
    description: "Second",
    from: `${url}/outgoing/admin`,
    item: { replaces: first?.href }
  }])
  const { withdrawn } = await sent.withdraw()
  await sent.wait()
  expect((await mailbox.read()).notifications).toMatchObject([{ item: { withdrawn } }])
  expect(await rejection(sent.withdraw())).toBeInstanceOf(Conflict)
  expect(await rejection(sent.replace(message))).toBeInstanceOf(Conflict)
})

it("ends a wait by its signal, with the signal's reason", async () => {
  const { href } = await admin.openMailbox()
  const sent = await admin.send({ to: href, description: "x", url: "http://x.test/" })
  const reason = new Error("enough")
  const stop = new AbortController()
  const waiting = sent.wait({ until: () => false, signal: stop.signal })
  stop.abort(reason)
  expect(await rejection(waiting)).toBe(reason)
})

it("reads several mailboxes as a cabinet", async () => {
  const [one, two] = [await admin.openMailbox(), await admin.openMailbox()]
  await one.mailbox.deposit({ description: "first", url: "http://x.test/" })
  await two.mailbox.deposit({ description: "second", url: "http://x.test/" })
  const cabinet = await admin.createCabinet({ title: "Both", mailboxes: [one.href, two.href] })
  const page = await cabinet.read()
  expect(page.notifications).toMatchObject([
    { description: "first", mailbox: one.href },
    { description: "second", mailbox: two.href }
  ])
  expect(page).toMatchObject({ title: "Both", more: false })
  await two.mailbox.deposit({ description: "third", url: "http://x.test/" })
  expect((await cabinet.read({ after: page.cursor })).notifications)
    .toMatchObject([{ description: "third" }])
  await cabinet.replace({ mailboxes: [one.href, two.href], contains: "IR" })
  expect((await all(cabinet.notifications())).map(({ description }) => description))
    .toEqual(["first", "third"])
  expect((await take(1, admin.cabinets()))[0]?.href).toBe(cabinet.href)
  await cabinet.delete()
  expect(await rejection(cabinet.read())).toBeInstanceOf(Gone)
})

it("does not send the account's token to other services", async () => {
  const requests: Array<Headers> = []
  const other = here.asAdmin(url, {
    fetch: (input, init) => {
      if (!input.startsWith(url)) {
        requests.push(new Headers(init?.headers))
        return Promise.resolve(new Response("theirs"))
      }
      return fetch(input, init)
    }
  })
  const theirs = await other.get("http://elsewhere.test/content/1", {
    password: "0123456789abcdef"
  })
  expect(await theirs.response.text()).toBe("theirs")
  await other.get(`${url.replace(/:\d+$/, "")}.evil.test/`)
  expect(requests.map((headers) => headers.get("authorization"))).toEqual([null, null])
  expect(requests[0]?.get("message-password")).toBe("0123456789abcdef")
  expect(await rejection(other.get("ftp://elsewhere.test/"))).toBeInstanceOf(TypeError)
})

it("reports what an account may not do", async () => {
  const { href } = await admin.openMailbox({ name: "accounts-only", deposit: "accounts" })
  const stranger = connect({ url })
  const refused = await rejection(
    stranger.mailbox(href).deposit({ description: "x", url: "http://x.test/" })
  )
  expect(refused instanceof Unauthenticated || refused instanceof Forbidden).toBe(true)
})

it("chooses the mailbox that receives failure reports", async () => {
  await admin.openMailbox({ name: "reports" })
  const chosen = async () => {
    const { text } = await admin.request({ method: "GET", uri: "/accounts/admin" })
    const found = /<failure-reports>([^<]*)|"failure-reports":"([^"]*)/.exec(text)
    return found?.slice(1).join("")
  }
  await admin.accounts.chooseReportsMailbox("admin", "reports")
  expect(await chosen()).toBe("reports")
  await admin.accounts.chooseReportsMailbox("admin")
  expect(await chosen()).toBeUndefined()
  expect(await rejection(admin.accounts.chooseReportsMailbox("admin", "not-there")))
    .toBeInstanceOf(Unprocessable)
})

it("opens accounts with a mailbox for their failure reports, or without one", async () => {
  const { reportsMailbox = "", token } = await admin.accounts.open("reported")
  expect(reportsMailbox).toMatch(/^reports-[0-9a-f]{32}$/)
  const { text } = await admin.request({ method: "GET", uri: "/accounts/reported" })
  expect([token.startsWith("rst_"), text.includes(reportsMailbox)]).toEqual([true, true])
  const refusing = await admin.accounts.open("refusing", [], { reports: false })
  expect(refusing.reportsMailbox).toBeUndefined()
})

it("pauses and resumes relays, all or those to an origin", async () => {
  const { outgoing } = admin
  expect(await outgoing.pauses()).toEqual({ since: undefined, origins: [] })
  const one = { origin: "https://receiver.example", since: expect.any(String) }
  expect(await outgoing.pause("https://RECEIVER.example/inbox"))
    .toEqual({ since: undefined, origins: [one] })
  expect(await outgoing.pause()).toEqual({ since: expect.any(String), origins: [one] })
  const { href, mailbox } = await admin.openMailbox()
  const sent = await admin.send({ to: href, description: "Later", url: "http://sender.test/later" })
  await sent.wait({ until: ({ recipients }) => recipients[0]?.paused !== undefined })
  expect(await outgoing.resume("https://receiver.example"))
    .toEqual({ since: expect.any(String), origins: [] })
  expect((await mailbox.read()).notifications).toEqual([])
  expect(await outgoing.resume()).toEqual({ since: undefined, origins: [] })
  expect(await sent.wait()).toMatchObject({ status: "sent", recipients: [{ paused: undefined }] })
})
