/** Log items that report removals to registrations: no answer shows them. */
import { Effect } from "effect"
import { afterAll, beforeAll, expect, test } from "vitest"
import { encodeRemoval } from "../../actors/mailbox/log-item.ts"
import type { MailboxMessage } from "../../actors/mailbox/protocol.ts"
import type { RegistrationMessage as Registration } from "../../actors/registration/protocol.ts"
import { childrenOf } from "../../http/formats/xml/index.ts"
import { address } from "../../runtime/index.ts"
import { descriptions, type Mailboxes, owner, startMailboxes, timeOf } from "./mailbox-harness.ts"

let service: Mailboxes

beforeAll(async () => {
  service = await startMailboxes()
})

afterAll(() => service.close())

/** A mailbox with a registration, three notifications, and the second of them deleted. */
const prepare = async (name: string) => {
  const { href } = await service.open(name)
  const id = `${name}=registration`
  const { system } = service.service
  const create: Registration = {
    _tag: "Create",
    requestId: id,
    form: "native",
    // Nothing listens at this port: the registration stays unverified.
    callback: "http://127.0.0.1:1/",
    secret: `whsec_${Buffer.alloc(32, "key").toString("base64")}`,
    leaseSeconds: 0,
    challenge: "challenge",
    cursor: 0
  }
  const register: MailboxMessage = { _tag: "Register", id, reader: { account: "admin" } }
  await Effect.runPromise(system.ask(address("registration", id), create))
  await Effect.runPromise(system.ask(address("mailbox", name), register))
  const hrefs: Array<string> = []
  for (const text of ["one", "two", "three"]) {
    hrefs.push((await service.deposit(href, text)).header("location"))
  }
  const before = timeOf(await service.send("GET", href, { basic: owner }))
  const gone = await service.send("DELETE", hrefs[1] ?? "", { basic: owner })
  expect(gone.status).toBe(204)
  return { href, before }
}

test("listings skip it, and their cursors pass it", async () => {
  const { before, href } = await prepare("removals")
  const get = (query: string) => service.send("GET", `${href}?${query}`, { basic: owner })
  const all = await get("")
  expect(descriptions(all)).toEqual(["one", "three"])
  const after = await get(`since=${before}`)
  expect(descriptions(after)).toEqual([])
  expect(timeOf(after) > before).toBe(true)
  await service.deposit(href, "four")
  const page = await get(`since=${before}&limit=1`)
  expect(descriptions(page)).toEqual([])
  expect(page.header("link")).toContain("rel=\"next\"")
  expect(descriptions(await get(`since=${timeOf(page)}&limit=1`))).toEqual(["four"])
  const mine = await service.send("GET", "/mailboxes", { basic: owner })
  const listed = childrenOf(mine.xml, "mailbox")
    .find((one) => one.attributes["href"]?.endsWith("/removals"))
  expect(listed?.attributes["notifications"]).toBe("3")
})

test("removed items at the beginning of the log are not read", async () => {
  const { href } = await service.open("beginning")
  const hrefs: Array<string> = []
  for (const text of ["one", "two", "three"]) {
    hrefs.push((await service.deposit(href, text)).header("location"))
  }
  for (const gone of hrefs.slice(0, 2)) await service.send("DELETE", gone, { basic: owner })
  const describe: MailboxMessage = { _tag: "List", reader: { account: "admin" } }
  const { system } = service.service
  expect(await Effect.runPromise(system.ask(address("mailbox", "beginning"), describe)))
    .toMatchObject({ view: { removedUpTo: 2, removed: 2, head: 3 } })
  const all = await service.send("GET", href, { basic: owner })
  expect(descriptions(all)).toEqual(["three"])
  await service.send("DELETE", hrefs[2] ?? "", { basic: owner })
  const none = await service.send("GET", href, { basic: owner })
  expect(descriptions(none)).toEqual([])
  await service.deposit(href, "four")
  const since = await service.send("GET", `${href}?since=${timeOf(none)}`, { basic: owner })
  expect(descriptions(since)).toEqual(["four"])
})

test("it has no URI", async () => {
  const { href } = await prepare("unnamed")
  const system = service.service.system
  const [event] = await Effect.runPromise(system.read(address("mailbox", "unnamed"), 4, 1))
  expect(event?.value.slice(event.value.indexOf(" ")))
    .toMatch(encodeRemoval(0, ["2-"]).slice(1))
  const answer = await service.send("GET", `${href}/notifications/4-${"A".repeat(22)}`, {
    basic: owner
  })
  expect(answer.status).toBe(404)
})

test("a long poll waits on past it", async () => {
  const { before, href } = await prepare("polled")
  const waiting = service.send("GET", `${href}?since=${before}`, {
    basic: owner,
    headers: { prefer: "wait=20" }
  })
  await new Promise((resolve) => setTimeout(resolve, 100))
  await service.deposit(href, "four")
  expect(descriptions(await waiting)).toEqual(["four"])
})

test("a stream sends nothing for it", async () => {
  const { before, href } = await prepare("streamed")
  const cut = new AbortController()
  const response = await fetch(`${href}?since=${before}`, {
    headers: {
      accept: "text/event-stream",
      authorization: `Basic ${Buffer.from(owner).toString("base64")}`
    },
    signal: cut.signal
  })
  await service.deposit(href, "four")
  let text = ""
  for await (const bytes of response.body ?? []) {
    text += Buffer.from(bytes).toString()
    if (text.includes("four")) break
  }
  expect(text.match(/^event: notification$/gm)?.length).toBe(1)
  cut.abort()
})
