/** Eager fetches and receipts: a mailbox as the recipient in A3 and A4. */
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { childOf, childrenOf, type Element, parseText } from "../../http/formats/xml/index.ts"
import type { Answered } from "./harness.ts"
import { type Mailboxes, notification, owner, startMailboxes } from "./mailbox-harness.ts"
import { eventually, type Receiver, startReceiver } from "./receiver.ts"

let service: Mailboxes
let outside: Receiver
let faults = 0

beforeAll(async () => {
  service = await startMailboxes()
  outside = await startReceiver(({ headers, method, path }, response) => {
    if (method === "POST") return void response.writeHead(202).end()
    if (method === "HEAD") {
      const types = path.startsWith("/unasked") ? "text/plain, */*" : "text/plain, application/xml"
      return void response.writeHead(200, { "Accept-Post": types }).end()
    }
    if (path === "/secret" && headers["message-password"] !== "the-right-password") {
      return void response.writeHead(401).end()
    }
    if (path === "/flaky" && faults++ < 2) return void response.writeHead(503).end()
    if (path === "/gone") return void response.writeHead(404).end()
    if (path === "/large") return void response.end("x".repeat(2_000))
    response.writeHead(200, { "Content-Type": "text/plain; charset=utf-8" }).end(`body of ${path}`)
  })
})

afterAll(async () => {
  await outside.close()
  await service.close()
})

const eager = "<fetch>eager</fetch><fetch-limit>1000</fetch-limit>"

const listed = (href: string): Promise<Answered> => service.send("GET", href, { basic: owner })

/** The copy in the listing's first notification; waits until there is one. */
const copyIn = (href: string): Promise<Element> =>
  eventually(`a copy in ${href}`, async () => {
    const first = childOf((await listed(href)).xml, "notification")
    return first === undefined ? undefined : childOf(first, "cached")
  })

/** The receipts for the message at this path. */
const receiptsOf = (path: string): ReadonlyArray<Element> =>
  outside.received.flatMap((one) => {
    if (one.method !== "POST" || one.path !== path) return []
    const parsed = parseText(one.body)
    return parsed.ok ? [parsed.value] : []
  })

const receiptOf = (path: string): Promise<Element> =>
  eventually(`a receipt for ${path}`, () => receiptsOf(path)[0])

describe("a mailbox that fetches eagerly", () => {
  it("keeps a copy of another service's content and shows it", async () => {
    const { href } = await service.open("eager", eager)
    await service.send("POST", href, {
      basic: owner,
      body: notification("hello", `${outside.origin}/hello`)
    })
    const { attributes } = await copyIn(href)
    expect(attributes).toMatchObject({ type: "text/plain; charset=utf-8", length: "14" })
    const copy = await service.send("GET", attributes["href"] ?? "")
    expect([copy.status, copy.text]).toEqual([200, "body of /hello"])
    const [first] = childrenOf((await listed(href)).xml, "notification")
    const one = await listed(first?.attributes["href"] ?? "")
    expect(childOf(one.xml, "cached")?.attributes).toEqual(attributes)
  })

  it("brings the message password", async () => {
    const { href } = await service.open("eager-secret", eager)
    const body = notification("hush", `${outside.origin}/secret`).replace(
      "</item>",
      "<password>the-right-password</password></item>"
    )
    await service.send("POST", href, { basic: owner, body })
    const { attributes } = await copyIn(href)
    const copy = attributes["href"] ?? ""
    // The copy has the password too; the mailbox's owner needs none.
    expect((await service.send("GET", copy)).status).toBe(401)
    const headers = { "Message-Password": "the-right-password" }
    for (const reader of [{ headers }, { basic: owner }]) {
      expect((await service.send("GET", copy, reader)).text).toBe("body of /secret")
    }
  })

  it("copies content of this service with its message password", async () => {
    const headers = { "Message-Password": "the-right-password" }
    const options = { body: "own secret", type: "text/plain", headers }
    const created = await service.send("POST", "/content", options)
    const { href } = await service.open("eager-own-secret", eager)
    const body = notification("hush", created.header("location")).replace(
      "</item>",
      "<password>the-right-password</password></item>"
    )
    expect((await service.send("POST", href, { body })).status).toBe(202)
    const copy = (await copyIn(href)).attributes["href"] ?? ""
    expect((await service.send("GET", copy, { headers })).text).toBe("own secret")
  })

  it("retries after a fault", async () => {
    const { href } = await service.open("eager-flaky", eager)
    await service.send("POST", href, {
      basic: owner,
      body: notification("again", `${outside.origin}/flaky`)
    })
    await copyIn(href)
    expect(outside.received.filter(({ method, path }) => method === "GET" && path === "/flaky"))
      .toHaveLength(3)
  })

  it("copies this service's own content without a request", async () => {
    const created = await service.send("POST", "/content", {
      body: "own words",
      type: "text/plain"
    })
    const { href } = await service.open("eager-own", eager)
    await service.send("POST", href, {
      basic: owner,
      body: notification("own", created.header("location"))
    })
    const { attributes } = await copyIn(href)
    expect(attributes["href"]).not.toBe(created.header("location"))
    expect((await service.send("GET", attributes["href"] ?? "")).text).toBe("own words")
  })

  it("reports a problem when it fails for good, and shows no copy", async () => {
    const { href } = await service.open("eager-fails", eager)
    for (const path of ["/gone", "/large"]) {
      await service.send("POST", href, {
        basic: owner,
        body: notification(path, outside.origin + path)
      })
      const receipt = await receiptOf(path)
      expect(receipt.attributes).toEqual({ status: "problem", mailbox: href })
      expect(childOf(receipt, "description")?.children.join("")).toMatch(/404|larger/)
    }
    const [first] = childrenOf((await listed(href)).xml, "notification")
    expect(first === undefined ? undefined : childOf(first, "cached")).toBeUndefined()
  })

  it("removes the copy with its notification", async () => {
    const { href } = await service.open("eager-removed", eager)
    await service.send("POST", href, {
      basic: owner,
      body: notification("bye", `${outside.origin}/bye`)
    })
    const { attributes } = await copyIn(href)
    const [first] = childrenOf((await listed(href)).xml, "notification")
    await service.send("DELETE", first?.attributes["href"] ?? "", { basic: owner })
    await eventually("the copy is gone", async () => {
      const { status } = await service.send("GET", attributes["href"] ?? "")
      return status === 410 ? true : undefined
    })
  })

  it("removes its copies when it is destroyed", async () => {
    const { href } = await service.open("eager-destroyed", eager)
    await service.send("POST", href, {
      basic: owner,
      body: notification("end", `${outside.origin}/end`)
    })
    const { attributes } = await copyIn(href)
    expect((await service.send("DELETE", href, { basic: owner })).status).toBe(204)
    await eventually("the copy is gone", async () => {
      const { status } = await service.send("GET", attributes["href"] ?? "")
      return status === 410 ? true : undefined
    })
  })
})

describe("receipts", () => {
  it("are sent on deposit", async () => {
    const { href } = await service.open("tells", "<receipts>received</receipts>")
    await service.send("POST", href, {
      basic: owner,
      body: notification("r", `${outside.origin}/reported`)
    })
    expect((await receiptOf("/reported")).attributes).toEqual({ status: "received", mailbox: href })
  })

  it("are sent on retrieval, not before", async () => {
    const { href } = await service.open("tells-late", "<receipts>retrieved</receipts>")
    await service.send("POST", href, {
      basic: owner,
      body: notification("r", `${outside.origin}/read`)
    })
    expect(receiptsOf("/read")).toEqual([])
    await listed(href)
    expect((await receiptOf("/read")).attributes).toEqual({ status: "retrieved", mailbox: href })
    await listed(href)
    expect(receiptsOf("/read")).toHaveLength(1)
  })

  it("go only to messages that take them, which one HEAD a day finds out", async () => {
    const { href } = await service.open("tells-asked", "<receipts>received</receipts>")
    const deposit = (path: string, description: string) =>
      service.send("POST", href, {
        basic: owner,
        body: notification(description, outside.origin + path)
      })
    const requests = (path: string) =>
      outside.received.filter((one) => one.path === path).map(({ method }) => method)
    await deposit("/unasked", "first")
    for (const description of ["one", "two"]) await deposit("/asked", description)
    await eventually("receipts", () => receiptsOf("/asked").length === 2 ? true : undefined)
    await deposit("/unasked", "again")
    await deposit("/asked", "three")
    await eventually("a receipt", () => receiptsOf("/asked").length === 3 ? true : undefined)
    expect(requests("/unasked")).toEqual(["HEAD"])
    expect(requests("/asked").filter((method) => method === "POST")).toHaveLength(3)
  })

  it("are taken by content of this service, which says so to its readers alone", async () => {
    const open = await service.send("POST", "/content", { body: "words", type: "text/plain" })
    const headers = { "Message-Password": "known-to-the-reader" }
    const sealed = await service.send("POST", "/content", {
      body: "w",
      type: "text/plain",
      headers
    })
    const shown = async (href: string, sending = {}) => {
      const answer = await service.send("HEAD", href, sending)
      return [answer.status, answer.headers.get("accept-post")?.includes("application/xml")]
    }
    expect(await shown(open.header("location"))).toEqual([200, true])
    expect(await shown(sealed.header("location"))).toEqual([401, undefined])
    expect(await shown(sealed.header("location"), { headers })).toEqual([200, true])
  })

  it("reach the publisher of this service's own content", async () => {
    const created = await service.send("POST", "/content", { body: "words", type: "text/plain" })
    const edit = /<([^>]+)>; rel="edit"/.exec(created.header("link"))?.[1] ?? ""
    const { href } = await service.open("tells-own", "<receipts>received</receipts>")
    await service.send("POST", href, {
      basic: owner,
      body: notification("own", created.header("location"))
    })
    const receipt = await eventually("a receipt", async () => {
      const receipts = await service.send("GET", `${edit}/receipts`)
      return childOf(receipts.xml, "receipt")
    })
    expect(receipt.attributes).toMatchObject({ status: "received", mailbox: href })
  })
})

describe("anonymous deposits", () => {
  const watched = `${eager}<receipts>received</receipts>`
  const many = 25
  /** Requests to paths that begin so. */
  const requestsTo = (path: string): number =>
    outside.received.filter((one) => one.path.startsWith(path)).length

  it("cause no request to a private address that is allowed, an account does", async () => {
    const { href } = await service.open("strangers", watched)
    const deposit = (path: string, basic?: string) =>
      service.send("POST", href, {
        body: notification(path, `${outside.origin}${path}`),
        ...basic === undefined ? {} : { basic }
      })
    for (let n = 0; n < 3; n++) expect((await deposit(`/strange/${n}`)).status).toBe(202)
    for (let n = 0; n < many; n++) {
      expect((await deposit(`/known/${n}`, service.bob)).status).toBe(202)
    }
    // Each causes a fetch, a HEAD and a receipt; those of strangers came before these.
    await eventually(
      "all requests of the account",
      () => requestsTo("/known/") === 3 * many ? true : undefined
    )
    expect(requestsTo("/strange/")).toBe(0)
  })
})
