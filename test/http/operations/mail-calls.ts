/** Content, mailboxes and registrations. */
import { newBrowser } from "../../actors/web-push.ts"
import { expect } from "vitest"
import { admin } from "../operation-requests.ts"
import { firstEvent, item, located, type OperationCalls } from "./calls.ts"

/** Content and receipts. */
export const askContent = async ({ asks, send, service }: OperationCalls): Promise<void> => {
  const bodies = { "text/plain": "Hello!" }
  const published = await asks("POST /content", {
    path: "/content",
    bodies,
    headers: { "Message-Password": "generate", "Content-Disposition": "inline" }
  })
  const [one] = published
  const path = located(service, published.slice(0, 1))
  const edit = /<([^>]*)>; rel="edit"/.exec(one?.header("link") ?? "")?.[1] ?? ""
  const own = edit.replace(service.base, "")
  const headers = { "Message-Password": one?.header("message-password") ?? "" }
  const reader = { path, basic: undefined, headers }
  await asks("GET /content/{content}", reader)
  for (const [range, status] of [["bytes=0-1", 206], ["bytes=99-", 416]] as const) {
    const part = await send("GET", path, { headers: { ...headers, Range: range } })
    expect(part.status).toBe(status)
  }
  expect((await send("GET", path)).status).toBe(401)
  await asks("POST /content/{content}", {
    ...reader,
    root: "receipt",
    json: () => ({ status: "received", mailbox: "http://example.org/m", description: "Thanks" })
  })
  await asks("POST /content/{content}/removal", {
    path: async () => {
      const body = { body: "Hello!", type: "text/plain", basic: admin }
      return `${located(service, [await send("POST", "/content", body)])}/removal`
    },
    form: () => ({}),
    besides: ["unfit"]
  })
  await asks("GET /content", { path: "/content", besides: ["weak"] })
  await asks("GET /content/{content}/receipts", { path: `${own}/receipts`, basic: undefined })
  await asks("GET /content/{content}/receipts/{receipt}", { path: `${own}/receipts/1` })
  await asks("PUT /content/{content}", { path: own, bodies, basic: undefined })
  await asks("DELETE /content/{content}", { path: own, basic: undefined })
}

const linked = JSON.stringify({ "@id": "http://example.org/ld", name: "x" })

/** Those of a mailbox. */
const registrations = async (
  { asks, receiver, send, service }: OperationCalls,
  mailbox: string
): Promise<void> => {
  const path = `${mailbox}/registrations`
  const callback = () => ({ callback: `${receiver.origin}/hook` })
  const native = await asks("POST /mailboxes/{mailbox}/registrations", {
    path,
    root: "registration",
    json: callback,
    form: callback,
    isClosed: true
  })
  const one = { path: located(service, native), isClosed: true }
  const hub = {
    "hub.mode": "subscribe",
    "hub.topic": service.base + mailbox,
    "hub.callback": `${receiver.origin}/hub`
  }
  const type = "application/x-www-form-urlencoded"
  const subscribed = await asks("POST /mailboxes/{mailbox}/registrations", {
    path,
    root: "registration",
    json: callback,
    form: () => hub,
    isClosed: true
  })
  expect(subscribed.some(({ status }) => status === 202)).toBe(true)
  const { auth, p256dh } = await newBrowser()
  const endpoint = `${receiver.origin}/push`
  const browser = await asks("POST /mailboxes/{mailbox}/registrations", {
    path,
    root: "registration",
    json: () => ({ endpoint, keys: { p256dh, auth } }),
    form: callback,
    isClosed: true
  })
  expect(browser.some(({ status, text }) => status === 201 && text.includes("webpush"))).toBe(true)
  const away = new URLSearchParams({ ...hub, "hub.mode": "unsubscribe" }).toString()
  expect((await send("POST", path, { basic: admin, type, body: away })).status).toBe(202)
  for (const accept of ["text/xml", "application/json", "text/html", "text/plain"]) {
    const body = new URLSearchParams(hub).toString()
    const again = await send("POST", path, { basic: admin, type, body, accept })
    expect([accept, again.status]).toEqual([accept, 202])
  }
  await asks("GET /mailboxes/{mailbox}/registrations", { path, isClosed: true })
  const key = "/mailboxes/{mailbox}/registrations/{registration}"
  await asks(`GET ${key}`, one)
  await asks(`GET ${key}/attempts`, { ...one, path: `${one.path}/attempts` })
  await asks(`PUT ${key}`, { ...one, root: "registration", json: callback })
  const put = () => ({ method: "put", ...callback() })
  await asks(`POST ${key}/secret`, {
    ...one,
    path: `${one.path}/secret`,
    form: () => ({}),
    besides: ["unfit"]
  })
  const push = () => ({ headers: "webhook-id: x", body: "<changed/>" })
  await asks(`POST ${key}/signature-check`, {
    ...one,
    path: `${one.path}/signature-check`,
    root: "signature-check",
    json: push,
    form: push
  })
  let tested = 0
  // Each is a browser's, which is active at once: one has a bound of tests in a minute.
  const test = async () => {
    // A mailbox takes a bounded number of browsers at one origin.
    const at = ++tested % 2 === 0 ? endpoint : endpoint.replace("127.0.0.1", "localhost")
    const subscription = { endpoint: `${at}/${tested}`, keys: { p256dh, auth } }
    const body = JSON.stringify(subscription)
    const made = await send("POST", path, { basic: admin, type: "application/json", body })
    return `${located(service, [made])}/test`
  }
  await asks(`POST ${key}/test`, {
    isClosed: true,
    path: test,
    form: () => ({}),
    besides: ["unfit"]
  })
  for (const accept of ["text/xml", "application/json", "text/html", "text/plain", undefined]) {
    const headers = { Prefer: "wait=0" }
    const accepted = accept === undefined ? {} : { accept }
    const begun = await send("POST", await test(), { basic: admin, headers, ...accepted })
    expect([accept, begun.status]).toEqual([accept, 202])
  }
  await asks(`POST ${key}`, { ...one, form: put })
  const body = "method=delete"
  expect((await send("POST", one.path, { basic: admin, type, body })).status).toBe(204)
  const other = located(service, native.slice(0, 1))
  await asks(`DELETE ${key}`, { path: other, isClosed: true })
}

/** Mailboxes, notifications and their stream. */
export const askMailboxes = async (calls: OperationCalls): Promise<void> => {
  const { asks, send, service } = calls
  const opened = await asks("POST /mailboxes", {
    path: "/mailboxes",
    besides: ["weak"],
    root: "mailbox",
    json: (round) => ({ name: `box${round}`, title: "A box", deposit: "anyone" }),
    form: (round) => ({ name: `box${round}`, title: "A box" })
  })
  const path = located(service, opened)
  await asks("GET /mailboxes", { path: "/mailboxes?limit=1000" })
  const deposited = await asks("POST /mailboxes/{mailbox}", {
    path,
    root: "notification",
    json: (round) => ({ item: item(round), extra: { more: "1" } }),
    form: (round) => ({ ...item(round), content: "" }),
    bodies: { "application/ld+json": linked }
  })
  const type = "application/ld+json"
  expect((await send("POST", path, { type, body: linked, accept: "text/html" })).status).toBe(201)
  await asks("GET /mailboxes/{mailbox}", { path: `${path}?limit=2`, isClosed: true })
  const one = { path: located(service, deposited), isClosed: true }
  const read = { path: `${one.path}/read` }
  await asks("PUT /mailboxes/{mailbox}/notifications/{notification}/read", read)
  await asks("DELETE /mailboxes/{mailbox}/notifications/{notification}/read", read)
  await asks("POST /mailboxes/{mailbox}/notifications/{notification}/read", {
    ...read,
    form: () => ({ method: "put" })
  })
  const time = "2026-01-01T00:00:00Z"
  const all = { path: `${path}/read` }
  await asks("PUT /mailboxes/{mailbox}/read", { ...all, root: "read", json: () => ({ time }) })
  await asks("POST /mailboxes/{mailbox}/read", { ...all, form: () => ({ time }) })
  // It is marked as read by now: else its page would mark it, which changes its entity tags.
  await asks("GET /mailboxes/{mailbox}/notifications/{notification}", one)
  expect((await firstEvent(service, path))?.data).toContain("<notification")
  const waited = await send("GET", path, { basic: admin, headers: { Prefer: "wait=1" } })
  expect(waited.header("preference-applied")).toBe("wait=1")
  await asks("DELETE /mailboxes/{mailbox}/notifications/{notification}", one)
  await asks("POST /mailboxes/{mailbox}/notifications/{notification}", {
    path: async () => {
      const body = JSON.stringify({ item: { ...item(0), description: crypto.randomUUID() } })
      const another = await send("POST", path, { type: "application/json", body, basic: admin })
      return located(service, [another])
    },
    form: () => ({ method: "delete" })
  })
  const settings = { root: "mailbox", json: () => ({ title: "Other", retention: "P1D" }) }
  await asks("PUT /mailboxes/{mailbox}", { path, ...settings })
  await asks("POST /mailboxes/{mailbox}/password", {
    path: `${path}/password`,
    form: () => ({}),
    besides: ["unfit"]
  })
  await asks("POST /mailboxes/{mailbox}/settings", {
    path: `${path}/settings`,
    form: () => ({ method: "put", title: "Box", retention: "P1D", receipts: "received" })
  })
  await asks("POST /mailboxes/{mailbox}/webhooks", {
    path: `${path}/webhooks`,
    form: () => ({ sender: "github", "webhook-tags": "shop", secret: "0123456789abcdef" })
  })
  const signed = { path: `${path}/webhook-secret` }
  await asks("PUT /mailboxes/{mailbox}/webhook-secret", {
    ...signed,
    root: "webhook-secret",
    json: () => ({ secret: "0123456789abcdef" })
  })
  await asks("DELETE /mailboxes/{mailbox}/webhook-secret", signed)
  await registrations(calls, path)
  await asks("DELETE /mailboxes/{mailbox}", { path })
}
