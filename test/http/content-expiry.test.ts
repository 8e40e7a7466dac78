/** How long content of strangers is kept, and content that deposits bring (protocol §7). */
import { Effect } from "effect"
import { afterAll, beforeAll, describe, expect, it, onTestFinished, vi } from "vitest"
import { childrenOf } from "../../http/formats/xml/index.ts"
import { StorageUnavailable } from "../../runtime/index.ts"
import type { Answered, Sending } from "./harness.ts"
import { childText, itemOf, type Mailboxes, notification, owner,
  startMailboxes } from "./mailbox-harness.ts"
import { eventually } from "./receiver.ts"

const anonymousRetentionMs = 2_000

let service: Mailboxes

beforeAll(async () => {
  service = await startMailboxes(undefined, { anonymousRetentionMs })
})
afterAll(() => service.close())

const send: Mailboxes["send"] = (...request) => service.send(...request)

interface Publication {
  readonly href: string
  /** Its listing of receipts: who asks for that does not read the content. */
  readonly receipts: string
}

const publish = async (sending: Sending = {}): Promise<Publication> => {
  const answer = await send("POST", "/content", { body: "words", type: "text/plain", ...sending })
  const edit = /<([^>]+)>; rel="edit"/.exec(answer.header("link"))?.[1] ?? ""
  return { href: answer.header("location"), receipts: `${edit}/receipts` }
}

const isGone = async ({ receipts }: Publication): Promise<boolean> =>
  (await send("GET", receipts)).status === 410

const expired = (content: Publication): Promise<true> =>
  eventually(
    `${content.href} has expired`,
    async () => await isGone(content) ? true : undefined
  )

const deposit = async (href: string, body: string, sending: Sending = {}): Promise<string> => {
  const answer = await send("POST", href, { body, type: "application/xml", ...sending })
  expect(answer.status).toBe(202)
  return answer.header("location")
}

/** The status of content that was inlined. */
const gone = (href: string): Promise<true> =>
  eventually(
    `${href} is gone`,
    async () => (await send("GET", href)).status === 410 ? true : undefined
  )

/** A retention passes for what was published before. */
const passRetention = async (): Promise<void> => expired(await publish()).then(() => undefined)

/** Sends a notification to a mailbox of this service, and waits until it is there. */
const relay = async (to: string, body: string): Promise<string> => {
  const addressed = body.replace("<item>", `<to>${to}</to><item>`)
  const sent = await send("POST", "/outgoing/admin", { body: addressed, basic: owner })
  expect(sent.status).toBe(202)
  const href = sent.header("location")
  return eventually(`${href} is sent`, async () => {
    const status = await send("GET", href, { basic: owner })
    return status.xml.attributes["status"] === "sent" ? href : undefined
  })
}

/**
 * Content with a notification that links to it. On a slow machine content may have expired before
 * its notification is there; then another one is published.
 */
const linked = async (notify: (url: string) => Promise<string>) => {
  for (;;) {
    const content = await publish()
    const href = await notify(content.href)
    if (!await isGone(content)) return { content, href }
  }
}

describe("content of an anonymous client", () => {
  it("expires with its receipts, a retention after its publication or its last read", async () => {
    const publishedMs = Date.now()
    const read = await publish()
    const unread = await publish()
    await send("POST", unread.href, { body: "<receipt status=\"received\"/>" })
    const endMs = publishedMs + anonymousRetentionMs / 2
    while (Date.now() < endMs) await new Promise((resolve) => setTimeout(resolve, 20))
    const readMs = Date.now()
    // On a slow machine it may have expired before this read.
    const { status } = await send("GET", read.href)
    await expired(unread)
    expect(Date.now() - publishedMs).toBeGreaterThanOrEqual(anonymousRetentionMs)
    await expired(read)
    if (status === 200) expect(Date.now() - readMs).toBeGreaterThanOrEqual(anonymousRetentionMs)
    for (const { href } of [read, unread]) expect((await send("GET", href)).status).toBe(410)
    expect((await send("POST", unread.href, { body: "<receipt status=\"received\"/>" })).status)
      .toBe(410)
  })

  it("stays while an unretrieved notification links to it, and not longer", async () => {
    const { href } = await service.open("keeps")
    const { href: relayed } = await service.open("keeps-relayed")
    const { href: removing } = await service.open("keeps-removing")
    const { href: destroying } = await service.open("keeps-destroying")
    const kept = await linked((url) => deposit(href, notification("kept", url)))
    const sent = await linked((url) => relay(relayed, notification("relayed", url)))
    const removed = await linked((url) => deposit(removing, notification("removed", url)))
    const destroyed = await linked((url) => deposit(destroying, notification("destroyed", url)))
    const contents = [kept, sent, removed, destroyed].map(({ content }) => content)
    await passRetention()
    await passRetention()
    for (const content of contents) expect(await isGone(content)).toBe(false)
    // Each listing retrieves its notifications.
    for (const mailbox of [href, relayed]) {
      const listed = await send("GET", mailbox, { basic: owner })
      expect(childrenOf(listed.xml, "notification")).not.toHaveLength(0)
    }
    await send("DELETE", removed.href, { basic: owner })
    await send("DELETE", destroying, { basic: owner })
    for (const content of contents) await expired(content)
  })

  it("is what an account's content is not: that stays", async () => {
    const content = await publish({ basic: service.bob })
    const { href } = await service.open("keeps-nothing")
    await deposit(href, notification("owned", content.href))
    await passRetention()
    expect((await send("GET", content.href)).status).toBe(200)
  })

  it("may be gone before a notification links to it", async () => {
    const content = await publish()
    await expired(content)
    const { href } = await service.open("dangling")
    await deposit(href, notification("dangling", content.href))
  })
})

/**
 * A task finds the content of each notification, and removes it with that. If the notification is
 * gone by then, only the hourly check of the content does. What is due later has expired here.
 */
const tasksPass = passRetention

const inlining = (text: string): string =>
  `<notification><item><description>inlined</description>` +
  `<content type="text/plain">${text}</content></item></notification>`

const urlOf = (answer: Answered): string => {
  const [one] = answer.xml.name === "notification"
    ? [answer.xml]
    : childrenOf(answer.xml, "notification").slice(-1)
  return childText(itemOf(one), "url")
}

describe("content that a deposit brings", () => {
  it("is removed with its notification, whoever removes that", async () => {
    const { href } = await service.open("brings")
    const kept = await deposit(href, inlining("kept"))
    const removed = await deposit(href, inlining("removed"))
    const urls: Array<string> = []
    for (const one of [kept, removed]) urls.push(urlOf(await send("GET", one, { basic: owner })))
    const [keptUrl = "", removedUrl = ""] = urls
    await tasksPass()
    await send("DELETE", removed, { basic: owner })
    await gone(removedUrl)
    // It is not of the stranger any more, so that it does not expire.
    await passRetention()
    expect((await send("GET", keptUrl)).text).toBe("kept")
    await send("DELETE", href, { basic: owner })
    await gone(keptUrl)
  })

  it("is removed when the retention of its notification has passed", async () => {
    const { href } = await service.open("brings-briefly", "<retention>PT5S</retention>")
    await deposit(href, inlining("brief"))
    await gone(urlOf(await send("GET", href, { basic: owner })))
  })

  it("is that of each notification that it came in", async () => {
    const { href } = await service.open("brings-again")
    const first = await deposit(href, inlining("again"))
    // A repetition brings nothing.
    expect(await deposit(href, inlining("again"))).toBe(first)
    const url = urlOf(await send("GET", first, { basic: owner }))
    await tasksPass()
    await send("DELETE", first, { basic: owner })
    const second = await deposit(href, inlining("again"))
    const again = urlOf(await send("GET", second, { basic: owner }))
    expect((await send("GET", again)).text).toBe("again")
    if (again !== url) await gone(url)
    await passRetention()
    expect((await send("GET", again)).text).toBe("again")
    await send("DELETE", second, { basic: owner })
    await gone(again)
  })

  it("comes once with an Idempotency-Key, and goes once", async () => {
    const { href } = await service.open("brings-keyed")
    const headers = { "Idempotency-Key": "\"inlined-content-with-a-key\"" }
    const first = await deposit(href, inlining("keyed"), { headers })
    expect(await deposit(href, inlining("keyed"), { headers })).toBe(first)
    const url = urlOf(await send("GET", first, { basic: owner }))
    await passRetention()
    expect((await send("GET", url)).text).toBe("keyed")
    await send("DELETE", first, { basic: owner })
    await gone(url)
  })

  it("stays if the first notification is removed while the deposit is repeated", async () => {
    let isRemoving = false
    const raced = await startMailboxes((one) => ({
      ...one,
      system: {
        ...one.system,
        ask: (to, message) =>
          Effect.tap(one.system.ask(to, message), (reply) => {
            if (!isRemoving || message._tag !== "Deposit") return Effect.void
            isRemoving = false
            expect(reply).toMatchObject({ _tag: "Deposited", n: 1, repeated: true })
            const reader = { account: "admin" }
            const idRandom = "any".padEnd(22, "_")
            return one.system.ask(to, { _tag: "Remove", n: 1, idRandom, reader })
          })
      }
    }))
    try {
      const { href } = await raced.open("raced")
      const sending = { body: inlining("raced"), type: "application/xml" }
      await raced.send("POST", href, sending)
      isRemoving = true
      const second = (await raced.send("POST", href, sending)).header("location")
      expect(second).toMatch(/\/2-[^/]+$/)
      const url = urlOf(await raced.send("GET", second, { basic: owner }))
      expect((await raced.send("GET", url)).text).toBe("raced")
    } finally {
      await raced.close()
    }
  })

  it("stays after a refusal if an earlier attempt may have stored the notification", async () => {
    let isRefusing = false
    const doubtful = await startMailboxes((one) => ({
      ...one,
      system: {
        ...one.system,
        // The deposit of the first attempt is kept late: the second one does not find it.
        read: (to, from, limit) =>
          isRefusing ? Effect.succeed([]) : one.system.read(to, from, limit),
        ask: (to, message) => {
          if (message._tag !== "Deposit") return one.system.ask(to, message)
          if (isRefusing) return Effect.succeed({ _tag: "Refused", reason: "Full" })
          return Effect.andThen(
            // Its signal to the key is late, too.
            one.system.ask(to, { ...message, key: undefined }),
            Effect.fail(new StorageUnavailable({ detail: "planned" }))
          )
        }
      }
    }))
    try {
      const { href } = await doubtful.open("doubtful")
      const headers = { "Idempotency-Key": "\"inlined-content-with-doubt\"" }
      const sending = { body: inlining("doubtful"), type: "application/xml", headers }
      expect((await doubtful.send("POST", href, sending)).status).toBe(503)
      isRefusing = true
      expect((await doubtful.send("POST", href, sending)).status).toBe(409)
      isRefusing = false
      const url = urlOf(await doubtful.send("GET", href, { basic: owner }))
      expect((await doubtful.send("GET", url)).text).toBe("doubtful")
    } finally {
      await doubtful.close()
    }
  })

  it("is not kept if the mailbox refuses the notification", async () => {
    const published: Array<string> = []
    const full = await startMailboxes((one) => ({
      ...one,
      system: {
        ...one.system,
        ask: (to, message) => {
          if (message._tag === "Publish") published.push(to.id)
          return message._tag === "Deposit"
            ? Effect.succeed({ _tag: "Refused", reason: "Full" })
            : one.system.ask(to, message)
        },
        askNew: (to, message) => {
          if (message._tag === "Publish") published.push(to.id)
          return one.system.askNew(to, message)
        }
      }
    }))
    try {
      const { href } = await full.open("full")
      for (const credentials of [{}, { basic: owner }]) {
        const answer = await full.send("POST", href, { body: inlining("refused"), ...credentials })
        expect(answer.status).toBe(409)
      }
      expect(published.length).toBeGreaterThanOrEqual(2)
      for (const id of published) {
        expect((await full.send("GET", `/content/${id}`)).status).toBe(410)
      }
    } finally {
      await full.close()
    }
  })

  it("stays with its notification if a clock was ahead before", async () => {
    const published: Array<string> = []
    let isFailing = false
    const shifted = await startMailboxes((one) => ({
      ...one,
      system: {
        ...one.system,
        ask: (to, message) => {
          if (!isFailing) return one.system.ask(to, message)
          if (message._tag === "Publish") published.push(to.id)
          return message._tag === "Deposit"
            ? Effect.fail(new StorageUnavailable({ detail: "planned" }))
            : one.system.ask(to, message)
        }
      }
    }))
    const trueMs = Date.now.bind(Date)
    let offMs = 0
    const clock = vi.spyOn(Date, "now").mockImplementation(() => trueMs() + offMs)
    onTestFinished(async () => {
      clock.mockRestore()
      await shifted.close()
    })
    const hourMs = 3_600_000
    const { href } = await shifted.open("ahead")
    const text = (body: string) => shifted.send("POST", href, { body, type: "text/plain" })
    offMs = hourMs
    await shifted.deposit(href, "from the future")
    offMs = 0
    // The mailbox dates all of them as the first one, since its time does not go back.
    for (let n = 0; n < 60; n++) await shifted.deposit(href, `other ${n}`)
    const location = (await text("the text")).header("location")
    const url = urlOf(await shifted.send("GET", location, { basic: owner }))
    isFailing = true
    expect((await text("never deposited")).status).toBe(503)
    isFailing = false
    offMs = 2 * hourMs
    // The same check removes the content of a deposit that has failed.
    expect(published).toHaveLength(1)
    const never = `/content/${published[0]}`
    await eventually(
      `${never} is gone`,
      async () => (await shifted.send("GET", never)).status === 410 ? true : undefined
    )
    expect((await shifted.send("GET", url)).text).toBe("the text")
  })
})
