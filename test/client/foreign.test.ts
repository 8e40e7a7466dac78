/** What another service answers never makes the client send the account's credentials. */
import { expect, it } from "vitest"
import { type Client, connect, type Mailbox, UnexpectedAnswer } from "../../client/index.ts"
import { all, rejection, take } from "./services.ts"

const own = "https://post.test"
const other = "https://elsewhere.test"
const inbox = `${other}/mailboxes/x`
const item = "<item><description>d</description><url>http://sender.test/</url></item>"
const itemJson = { description: "d", url: "http://sender.test/" }
const received = "2026-01-01T00:00:00Z"

interface Requested {
  readonly method: string
  readonly url: string
  readonly authorization: string | null
}

const json = (document: object, headers: Readonly<Record<string, string>> = {}): Response =>
  new Response(JSON.stringify(document), {
    headers: { "content-type": "application/json", ...headers }
  })

const stream = (...hrefs: ReadonlyArray<string>): Response =>
  new Response(
    hrefs.map((href, n) =>
      `id: ${n}\nevent: notification\n` +
      `data: <notification href="${href}" received="${received}">${item}</notification>\n\n`
    ).join(""),
    { headers: { "content-type": "text/event-stream" } }
  )

/** A client with an account of `https://post.test`, and the requests that it makes. */
const asAlice = (
  answer: (request: Requested) => Response,
  url = own
): { readonly client: Client; readonly requests: Array<Requested> } => {
  const requests: Array<Requested> = []
  const client = connect({
    url,
    account: "alice",
    token: "t0ken",
    attempts: 1,
    fetch: (input, init) => {
      const authorization = new Headers(init?.headers).get("authorization")
      // As fetch does it, without dot segments.
      const requested = { method: init?.method ?? "GET", url: new URL(input).href, authorization }
      requests.push(requested)
      return Promise.resolve(answer(requested))
    }
  })
  return { client, requests }
}

const isOwn = ({ authorization, url }: Requested): boolean =>
  authorization !== null || url.startsWith(own)

const removed = (): Response => new Response(null, { status: 204 })

it.each([
  "/mailboxes/alice",
  `${own}/mailboxes/alice`,
  "https://POST.test:443/mailboxes/alice",
  "/mailboxes/x/notifications/../../alice",
  "/mailboxes/x/notifications/%2e%2e",
  "/mailboxes/xy/notifications/1",
  "https://third.test/mailboxes/x/notifications/1",
  "mailto:alice"
])("removes no resource outside a mailbox of another service: %s", async (href) => {
  const { client, requests } = asAlice(({ method }) => method === "GET" ? stream(href) : removed())
  for (const uri of [inbox, `${inbox}~s`]) {
    const watching = client.mailbox(uri).watch({ acknowledge: true })
    expect(await rejection(take(2, watching))).toBeInstanceOf(UnexpectedAnswer)
  }
  const [notification] = await take(1, client.mailbox(inbox).watch())
  if (notification === undefined) throw new Error("it was empty")
  const withPassword = client.mailbox(inbox, { password: "0123456789abcdef" })
  for (const mailbox of [client.mailbox(inbox), withPassword]) {
    expect(await rejection(mailbox.remove(notification))).toBeInstanceOf(UnexpectedAnswer)
    expect(await rejection(mailbox.remove(href))).toBeInstanceOf(UnexpectedAnswer)
    expect(await rejection(mailbox.get(href))).toBeInstanceOf(UnexpectedAnswer)
  }
  expect(requests.filter(isOwn)).toEqual([])
  expect(requests.map(({ method }) => method)).toEqual(["GET", "GET", "GET"])
})

it.each(["/mailboxes/x/notifications/1", `${inbox}/notifications/1`, `${inbox}~s/notifications/1`])(
  "removes a notification of another service there, without credentials: %s",
  async (href) => {
    const answer = ({ method }: Requested) => method === "GET" ? stream(href) : removed()
    const { client, requests } = asAlice(answer)
    const watch = client.mailbox(`${inbox}~s`).watch({ acknowledge: true })
    for await (const notification of watch) {
      // A relative reference is one of the service that answered.
      expect(notification.href).toBe(new URL(href, other).href)
      await client.mailbox(inbox).remove(notification)
      break
    }
    expect(requests.slice(1)).toEqual([
      { method: "DELETE", url: new URL(href, other).href, authorization: null }
    ])
  }
)

it("acknowledges by the notification's own URI", async () => {
  const href = `${inbox}/notifications/1`
  const { client, requests } = asAlice(({ method, url }) => {
    if (method === "DELETE") return removed()
    return url.startsWith(own) ? json({}) : stream(href)
  })
  // The stream ends after its notification, so a second one is opened, and refused.
  const seen = await take(2, client.mailbox(inbox).watch({ acknowledge: true }))
  expect(seen).toHaveLength(2)
  expect(requests.map(({ method, url }) => `${method} ${url}`)).toEqual([
    `GET ${inbox}`,
    `DELETE ${href}`,
    `GET ${inbox}`
  ])
  expect(requests.filter(isOwn)).toEqual([])
})

it.each([
  `${own}/mailboxes/alice?since=1`,
  "https://third.test/mailboxes/x?since=1"
])("follows no link of another service to a third one or to its own: %s", async (next) => {
  const page = { notification: [{ href: `${inbox}/notifications/1`, received, item: itemJson }] }
  const { client, requests } = asAlice(() => json(page, { link: `<${next}>; rel="next"` }))
  const listings = [client.mailbox(inbox), client.cabinet(`${other}/cabinets/x`)]
  for (const listing of listings) {
    expect(await rejection(take(2, listing.notifications()))).toBeInstanceOf(UnexpectedAnswer)
  }
  expect(requests.filter(isOwn)).toEqual([])
  expect(requests).toHaveLength(listings.length)
})

it("reads the pages of another service, also by relative links", async () => {
  const pageOf = (n: number) => ({
    notification: [{
      href: `/mailboxes/x/notifications/${n}`,
      received,
      item: { ...itemJson, url: "/archive" },
      cached: { href: "/content/1" }
    }]
  })
  const { client, requests } = asAlice(({ url }) => {
    const isLast = url.includes("since=1")
    return json(pageOf(isLast ? 2 : 1), isLast ? {} : { link: "<?since=1>; rel=next" })
  })
  const found = await all(client.mailbox(inbox).notifications())
  expect(found.map(({ cached, href, url }) => [href, url, cached?.href])).toEqual([
    [`${inbox}/notifications/1`, `${other}/archive`, `${other}/content/1`],
    [`${inbox}/notifications/2`, `${other}/archive`, `${other}/content/1`]
  ])
  expect(requests.map(({ url }) => url)).toEqual([`${inbox}?limit=100`, `${inbox}?since=1`])
  expect(requests.filter(isOwn)).toEqual([])
})

it("takes no resource of the own service for a registration at another", async () => {
  const registration = { status: "active", form: "native", callback: "http://c.test/" }
  for (const href of ["/mailboxes/alice", `${own}/mailboxes/alice`]) {
    const { client, requests } = asAlice(() =>
      json({ ...registration, href, attempts: "0", secret: "whsec_" })
    )
    const mailbox = client.mailbox(inbox)
    expect(await rejection(mailbox.register({ callback: "http://c.test/" })))
      .toBeInstanceOf(UnexpectedAnswer)
    expect(() => mailbox.registration(href)).toThrow(UnexpectedAnswer)
    expect(requests.filter(isOwn)).toEqual([])
  }
  const { client, requests } = asAlice(removed)
  await client.mailbox(inbox).registration("/mailboxes/x/registrations/1").delete()
  expect(requests.map(({ authorization, url }) => [url, authorization]))
    .toEqual([[`${inbox}/registrations/1`, null]])
})

it("takes a URI for the own service's only below its base URL", async () => {
  const { client, requests } = asAlice(() => json({}), `${own}/restante`)
  const uris = ["/../mailboxes/x", `${own}/restante/../mailboxes/x`, `${own}/restante2/mailboxes/x`]
  for (const uri of uris) await rejection(client.mailbox(uri).read())
  expect(requests.map(({ authorization }) => authorization)).toEqual([null, null, null])
  await rejection(client.mailbox(`${own}/restante/mailboxes/x`).read())
  expect(requests.at(-1)?.authorization).not.toBeNull()
})

it("acknowledges at the own service by whatever base URL it writes", async () => {
  const answer = ({ method }: Requested) =>
    method === "GET" ? stream("https://public.test/mailboxes/alice/notifications/1") : removed()
  const { client, requests } = asAlice(answer)
  const mailbox: Mailbox = client.mailbox("alice")
  await take(2, mailbox.watch({ acknowledge: true }))
  expect(requests[1]).toMatchObject({
    method: "DELETE",
    url: `${own}/mailboxes/alice/notifications/1`,
    authorization: expect.stringContaining("Basic")
  })
  // A notification of another service is none of this mailbox, whatever its path.
  const foreign = `${other}/mailboxes/alice/notifications/1`
  expect(await rejection(mailbox.remove(foreign))).toBeInstanceOf(UnexpectedAnswer)
})

const byStranger = [
  "/mailboxes/alice?limit=1000",
  `${own}/mailboxes/alice?limit=1000`,
  `${own}/archive`,
  "/content/../archive",
  "/content/%2e%2e/archive",
  "/content/..%2farchive",
  "/content/1/../../archive",
  "/content/1/receipts",
  "/content",
  "/content/"
]

it.each(byStranger)(
  "reads or reports no message with credentials beside content: %s",
  async (url) => {
    const { client, requests } = asAlice(() => new Response("theirs"))
    await client.get({ url })
    await client.report(url, { status: "retrieved" })
    expect(requests.map(({ authorization }) => authorization)).toEqual([null, null])
  }
)

it("reads and reports content of the own service with the account's credentials", async () => {
  for (const base of [own, `${own}/restante`]) {
    const { client, requests } = asAlice(() => new Response("mine"), base)
    for (const url of ["/content/x_Y-9", `${base}/content/x_Y-9`]) {
      await client.get({ url })
      await client.report(url, { status: "retrieved" })
    }
    expect(requests.map(({ url }) => url)).toEqual(Array(4).fill(`${base}/content/x_Y-9`))
    expect(requests.map(isOwn)).not.toContain(false)
    expect(requests.map(({ authorization }) => authorization)).not.toContain(null)
  }
})
