/** Quotas of content (protocol §7), on the store of each backend. */
import { Effect } from "effect"
import { connect } from "node:net"
import { afterAll, beforeAll, describe, expect, it, onTestFinished, vi } from "vitest"
import { contentOverheadBytes, prepaidBlockBytes, reservationMs } from "../../actors/limits.ts"
import { reservationsTable } from "../../actors/usage/index.ts"
import { keyRecordBytes, sessionBytesMax } from "../../http/limits.ts"
import { resourceTable } from "../../http/resource-table.ts"
import { makeMetricsText } from "../../http/resources/observability/prometheus-text.ts"
import { settleReservations } from "../../http/resources/content/content-reservations.ts"
import { adminToken, type Answered, type Harness, startService } from "./harness.ts"
import { keyed, loseReply, startLosing } from "./lost-replies.ts"

const admin = `admin:${adminToken}`

const kib = 1024

const quotas = {
  anonymousBytesMax: 100 * kib,
  networkBytesMax: 40 * kib,
  accountBytesMax: 60 * kib
}

const sessionQuotas = { ...quotas, networkBytesMax: Math.floor(3.5 * sessionBytesMax) }

let service: Harness

beforeAll(async () => {
  service = await startService(resourceTable, {
    quotas,
    contentBytesMax: 512 * kib,
    trustedProxies: ["127.0.0.1"]
  })
})
afterAll(() => service.close())

/** A listing of content as JSON. */
interface Listing {
  readonly content: ReadonlyArray<
    { readonly href: string; readonly expires?: string; readonly modified?: string }
  >
}

const bytes = (count: number) => "x".repeat(count)

interface From {
  readonly basic?: string
  /** The client's address, as a trusted proxy reports it. */
  readonly address?: string
}

const publish = (count: number, { address, basic }: From = {}) =>
  service.send("POST", "/content", {
    body: bytes(count),
    type: "text/plain",
    accept: "application/json",
    ...basic === undefined ? {} : { basic },
    headers: address === undefined ? {} : { "X-Forwarded-For": address }
  })

const pathOf = (answer: Answered) => answer.header("location").slice(service.base.length)

const editOf = (answer: Answered) => /<([^>]*)>; rel="edit"/.exec(answer.header("link"))?.[1] ?? ""

const total = (owner?: string) => service.run(service.service.usage.total(owner))

const until = async (holds: () => Promise<boolean>) => {
  while (!await holds()) await new Promise((resolve) => setTimeout(resolve, 20))
}

const untilTotal = (bytes: number, owner?: string) =>
  until(async () => (await total(owner)).bytes === bytes)

const newAccount = async (name: string): Promise<string> => {
  const created = await service.send("POST", "/accounts", {
    basic: admin,
    body: `<account><name>${name}</name></account>`
  })
  return `${name}:${/<token[^>]*>([^<]+)</.exec(created.text)?.[1] ?? ""}`
}

/** Sends a body in chunks until the service answers; the status of the answer. */
const sendChunks = (path: string, chunks: number, basic?: string): Promise<number> =>
  new Promise((resolve, reject) => {
    const { hostname, port } = new URL(service.nodes[0] ?? service.base)
    const socket = connect(Number(port), hostname)
    let answer = ""
    socket.on("data", (data) => {
      answer += String(data)
      const status = /^HTTP\/1\.1 (\d+)/.exec(answer)?.[1]
      if (status === undefined || status === "100") return
      socket.destroy()
      resolve(Number(status))
    })
    socket.on("error", reject)
    const credentials = basic === undefined
      ? ""
      : `Authorization: Basic ${Buffer.from(basic).toString("base64")}\r\n`
    socket.write(
      `POST ${path} HTTP/1.1\r\nHost: ${hostname}\r\n${credentials}` +
        "Content-Type: text/plain\r\nTransfer-Encoding: chunked\r\n\r\n"
    )
    const chunk = `${(4 * kib).toString(16)}\r\n${bytes(4 * kib)}\r\n`
    for (let at = 0; at < chunks; at++) socket.write(chunk)
    socket.write("0\r\n\r\n")
  })

const charge = (count: number) => count + contentOverheadBytes

describe("the quota of an account", () => {
  it("counts what it has, gives back what is replaced or deleted, and names itself", async () => {
    const carol = await newAccount("carol")
    const first = await publish(30 * kib, { basic: carol })
    expect(first.status).toBe(202)
    await untilTotal(charge(30 * kib), "carol")
    const refused = await publish(40 * kib, { basic: carol })
    expect(refused.status).toBe(507)
    expect(refused.json).toMatchObject({
      type: `${service.base}/problems/quota-exceeded`,
      quota: "account",
      "used-bytes": charge(30 * kib),
      "max-bytes": 60 * kib
    })
    expect(refused.text).toContain("ACCOUNT_BYTES_MAX")
    expect((await total("carol")).bytes).toBe(charge(30 * kib))
    // A replacement may use what it gives back.
    const put = (count: number) =>
      service.send("PUT", pathOf(first), { basic: carol, body: bytes(count), type: "text/plain" })
    expect((await put(58 * kib)).status).toBe(204)
    await untilTotal(charge(58 * kib), "carol")
    expect((await put(62 * kib)).status).toBe(507)
    expect((await service.send("GET", pathOf(first))).text).toHaveLength(58 * kib)
    expect((await put(1 * kib)).status).toBe(204)
    await untilTotal(charge(1 * kib), "carol")
    expect((await service.send("DELETE", pathOf(first), { basic: carol })).status).toBe(204)
    await until(async () => (await total("carol")).contents === 0)
    expect(await total("carol")).toEqual({ bytes: 0, contents: 0 })
  })

  it("does not tell another how much it uses", async () => {
    const dave = await newAccount("dave")
    const content = await publish(50 * kib, { basic: dave })
    const refused = await service.send("PUT", editOf(content), {
      body: bytes(62 * kib),
      type: "text/plain",
      accept: "application/json"
    })
    expect(refused.status).toBe(507)
    expect(refused.json).not.toHaveProperty("used-bytes")
    expect(refused.text).not.toContain("dave")
  })

  it("counts what a deposit brings with it, and refuses the deposit", async () => {
    const erin = await newAccount("erin")
    await service.send("POST", "/mailboxes", { basic: erin, headers: { Slug: "erins" } })
    const deposit = (count: number, what: string) =>
      service.send("POST", "/mailboxes/erins", {
        body: `<notification><item><description>${what}</description>` +
          `<content type="text/plain">${bytes(count)}</content></item></notification>`
      })
    expect((await deposit(40 * kib, "one")).status).toBe(202)
    await untilTotal(charge(40 * kib), "erin")
    expect((await deposit(30 * kib, "two")).status).toBe(507)
    // The same document again is the same content, which is there.
    expect((await deposit(40 * kib, "one")).status).toBe(202)
    await untilTotal(charge(40 * kib), "erin")
  })
})

describe("the quotas of strangers", () => {
  it("bound what one network publishes in a day, deleted or not", async () => {
    const address = "192.0.2.7"
    const content = await publish(30 * kib, { address })
    expect(content.status).toBe(202)
    const refused = await publish(20 * kib, { address: "192.0.2.99" })
    expect(refused.status).toBe(507)
    expect(refused.json).toMatchObject({
      quota: "network",
      "used-bytes": charge(30 * kib),
      "max-bytes": 40 * kib
    })
    expect(refused.text).toContain("192.0.2.0/24")
    expect(refused.json).toHaveProperty("until")
    expect((await service.send("DELETE", editOf(content))).status).toBe(204)
    expect((await publish(20 * kib, { address })).status).toBe(507)
    expect((await publish(1 * kib, { address: "198.51.100.1" })).status).toBe(202)
  })

  it("count a session of a network for its day, with all that it may store", async () => {
    const count = Math.floor(sessionQuotas.networkBytesMax / sessionBytesMax)
    const served = await startService(resourceTable, {
      quotas: sessionQuotas,
      trustedProxies: ["127.0.0.1"]
    })
    onTestFinished(() => served.close())
    const begin = (address?: string, basic?: string) =>
      served.send("POST", "/sessions", {
        body: "<answer continue=\"true\"/>",
        accept: "application/json",
        ...basic === undefined ? {} : { basic },
        headers: address === undefined ? {} : { "X-Forwarded-For": address }
      })
    for (let n = 0; n < count; n++) expect((await begin("192.0.2.7")).status).toBe(201)
    const refused = await begin("192.0.2.99")
    expect(refused.status).toBe(507)
    expect(refused.json).toMatchObject({
      quota: "network",
      "used-bytes": count * sessionBytesMax,
      "max-bytes": sessionQuotas.networkBytesMax
    })
    expect(refused.text).toContain("192.0.2.0/24")
    expect(refused.text).toContain("ANONYMOUS_NETWORK_BYTES_MAX")
    expect(refused.json).toHaveProperty("until")
    expect((await served.send("GET", "/sessions")).text.match(/<session /g)).toHaveLength(count)
    // Content counts for the same day.
    const published = await served.send("POST", "/content", {
      body: bytes(sessionBytesMax),
      type: "text/plain",
      headers: { "X-Forwarded-For": "192.0.2.7" }
    })
    expect(published.status).toBe(507)
    // Neither another network, nor an account, nor this machine.
    for (const one of [begin("198.51.100.1"), begin("192.0.2.7", admin), begin()]) {
      expect((await one).status).toBe(201)
    }
  })

  it("count a session once when a repetition finds it, as its reply was lost", async () => {
    const served = await startLosing({
      quotas: { ...quotas, networkBytesMax: sessionBytesMax + prepaidBlockBytes },
      trustedProxies: ["127.0.0.1"]
    })
    onTestFinished(() => served.close())
    const begin = (key: string) =>
      served.send(
        "POST",
        "/sessions",
        keyed(key, {
          body: "<answer continue=\"true\"/>",
          headers: { "X-Forwarded-For": "192.0.2.7" }
        })
      )
    loseReply("Start", true)
    expect((await begin("lost")).status).toBe(503)
    expect((await begin("lost")).status).toBe(201)
    expect((await begin("another")).status).toBe(507)
  })

  it("count the receipts of a network for its day, whatever content they are of", async () => {
    const receipt = "<receipt status=\"received\"/>"
    const receiptBytes = charge(JSON.stringify({ status: "received" }).length)
    const served = await startService(resourceTable, {
      quotas: { ...quotas, networkBytesMax: 2 * receiptBytes },
      trustedProxies: ["127.0.0.1"]
    })
    onTestFinished(() => served.close())
    const published = await served.send("POST", "/content", { body: "x", type: "text/plain" })
    const guarded = await served.send("POST", "/content", {
      body: "x",
      type: "text/plain",
      headers: { "Message-Password": "the-message-password" }
    })
    const send = (address?: string, basic?: string, to = published, password?: string) =>
      served.send("POST", to.header("location"), {
        body: receipt,
        accept: "application/json",
        ...basic === undefined ? {} : { basic },
        headers: {
          ...address === undefined ? {} : { "X-Forwarded-For": address },
          ...password === undefined ? {} : { "Message-Password": password }
        }
      })
    // A refused receipt does not count.
    expect((await send("192.0.2.7", undefined, guarded)).status).toBe(401)
    expect((await send("192.0.2.7")).status).toBe(202)
    expect((await send("192.0.2.7", undefined, guarded, "the-message-password")).status).toBe(202)
    const refused = await send("192.0.2.99")
    expect(refused.status).toBe(507)
    expect(refused.json).toMatchObject({ quota: "network", "used-bytes": 2 * receiptBytes })
    // The password of a message, with any name, is no account; a wrong token neither.
    const byPassword = "reader:the-message-password"
    expect((await send("192.0.2.7", byPassword, guarded)).status).toBe(507)
    expect((await send("192.0.2.7", "admin:wrong")).status).toBe(507)
    // Neither another network, nor an account, nor this machine.
    for (
      const one of [
        send("198.51.100.1"),
        send("198.51.100.1", byPassword, guarded),
        send("192.0.2.7", admin),
        send()
      ]
    ) expect((await one).status).toBe(202)
  })

  it("count a receipt once when a repetition finds it, as its reply was lost", async () => {
    const served = await startLosing({
      quotas: { ...quotas, networkBytesMax: 3 * contentOverheadBytes + 100 },
      trustedProxies: ["127.0.0.1"]
    })
    onTestFinished(() => served.close())
    const published = await served.send("POST", "/content", { body: "x", type: "text/plain" })
    const send = (key: string) =>
      served.send(
        "POST",
        published.header("location"),
        keyed(key, {
          body: "<receipt status=\"received\"/>",
          headers: { "X-Forwarded-For": "192.0.2.7" }
        })
      )
    loseReply("Receipt", true)
    expect((await send("lost")).status).toBe(503)
    expect((await send("lost")).header("location")).toContain("/receipts/1")
    expect((await send("another")).status).toBe(507)
  })

  it("count the idempotency keys of a network for its day, and no repetition", async () => {
    const served = await startService(resourceTable, {
      quotas: { ...quotas, networkBytesMax: 3 * keyRecordBytes },
      trustedProxies: ["127.0.0.1"]
    })
    onTestFinished(() => served.close())
    await served.send("POST", "/mailboxes", { basic: admin, headers: { Slug: "alice" } })
    const item = (text: string) =>
      `<notification><item><description>${text}</description>` +
      "<url>http://example.org/</url></item></notification>"
    const deposit = (key: string, from: From & { readonly body?: string } = {}) =>
      served.send(
        "POST",
        "/mailboxes/alice",
        keyed(key, {
          body: from.body ?? item(key),
          accept: "application/json",
          ...from.basic === undefined ? {} : { basic: from.basic },
          headers: { "X-Forwarded-For": from.address ?? "192.0.2.7" }
        })
      )
    // What is refused stores no key. Its node keeps the counted bytes for its own next records.
    for (let at = 0; at < 4 && served.services.length === 1; at++) {
      expect((await deposit(`refused ${at}`, { body: "<notification/>" })).status).toBe(422)
    }
    const first = await deposit("deposit 1")
    for (const key of ["deposit 2", "deposit 3"]) expect((await deposit(key)).status).toBe(202)
    const refused = await deposit("deposit 4", { address: "192.0.2.99" })
    expect(refused.status).toBe(507)
    expect(refused.json).toMatchObject({ quota: "network", "max-bytes": 3 * keyRecordBytes })
    const repeated = await deposit("deposit 1")
    expect([repeated.status, repeated.text]).toEqual([202, first.text])
    // Neither a request without a key, nor another network, nor an account, nor this machine.
    const unkeyed = await served.send("POST", "/mailboxes/alice", {
      body: item("unkeyed"),
      headers: { "X-Forwarded-For": "192.0.2.7" }
    })
    const local = await served.send(
      "POST",
      "/mailboxes/alice",
      keyed("local deposit", { body: item("5") })
    )
    const others = [
      unkeyed,
      local,
      await deposit("deposit 6", { address: "198.51.100.1" }),
      await deposit("deposit 7", { basic: admin })
    ]
    for (const { status } of others) expect(status).toBeLessThan(300)
  })

  it("count a page that is the answer of a key, which else is not stored", async () => {
    const served = await startService(resourceTable, {
      quotas: { ...quotas, networkBytesMax: 2 * keyRecordBytes },
      trustedProxies: ["127.0.0.1"]
    })
    onTestFinished(() => served.close())
    await served.send("POST", "/mailboxes", { basic: admin, headers: { Slug: "alice" } })
    const messages: Array<string> = []
    for (const { system } of served.services) {
      const ask = system.ask
      const spied = vi.spyOn(system, "ask").mockImplementation((to, message) =>
        Effect.suspend(() => {
          messages.push(message._tag)
          return ask(to, message)
        })
      )
      onTestFinished(() => spied.mockRestore())
    }
    const deposit = () =>
      served.send(
        "POST",
        "/mailboxes/alice",
        keyed("page deposit", {
          body: "<notification><item><description>x</description>" +
            "<url>http://example.org/</url></item></notification>",
          accept: "text/html",
          headers: { "X-Forwarded-For": "192.0.2.7" }
        })
      )
    const first = await deposit()
    expect(first.text.length).toBeGreaterThan(keyRecordBytes)
    expect(messages).not.toContain("Complete")
    // The repetition finds the deposit.
    const repeated = await deposit()
    expect([repeated.status, repeated.header("location")])
      .toEqual([first.status, first.header("location")])
  })

  it("let a body in chunks that has used all of it be repeated", async () => {
    const anonymousBytesMax = charge(4 * kib)
    const served = await startLosing({ quotas: { ...quotas, anonymousBytesMax } })
    onTestFinished(() => served.close())
    async function* chunk() {
      yield Buffer.alloc(4 * kib)
    }
    const send = async (): Promise<number> => {
      const headers = { "Idempotency-Key": "\"the key of a body in chunks\"" }
      const init = { method: "POST", headers, body: chunk(), duplex: "half" }
      // Node's fetch takes an async iterable as a body; the DOM's types do not say so.
      return (await fetch(`${served.base}/content`, init as unknown as RequestInit)).status
    }
    loseReply("Publish", true)
    expect(await send()).toBe(503)
    const { usage } = served.service
    await until(async () => {
      const { bytes } = await served.run(usage.total(undefined))
      return bytes === anonymousBytesMax
    })
    expect(await send()).toBe(202)
  })

  it("count the queries of a network for its day, as they are stored", async () => {
    const served = await startService(resourceTable, { quotas, trustedProxies: ["127.0.0.1"] })
    onTestFinished(() => served.close())
    /** About so many KiB as stored: values of 200 characters. */
    const queryOf = (size: number) => {
      const one = `<where field="name" op="contains" value="${bytes(190)}"/>`
      return `<query on="customers"><any>${one.repeat(size * 4)}</any></query>`
    }
    const create = (size: number, { address, basic }: From = {}) =>
      served.send("POST", "/queries", {
        body: queryOf(size),
        accept: "application/json",
        ...basic === undefined ? {} : { basic },
        headers: address === undefined ? {} : { "X-Forwarded-For": address }
      })
    const [one, other] = ["2001:db8:7:1::1", "2001:db8:7:2::1"]
    const first = await create(16, { address: one })
    expect(first.status).toBe(201)
    const small = await create(1, { address: other })
    expect(small.status).toBe(201)
    const refused = await create(24, { address: other })
    expect(refused.status).toBe(507)
    expect(refused.json).toMatchObject({ quota: "network", "max-bytes": 40 * kib })
    expect(refused.text).toContain("2001:db8:7::/48")
    // A query that grows counts its growth; one that shrinks gives nothing back.
    const replace = (query: Answered, size: number) =>
      served.send("PUT", editOf(query), {
        body: queryOf(size),
        headers: { "X-Forwarded-For": one }
      })
    expect((await replace(small, 24)).status).toBe(507)
    expect((await replace(small, 0)).status).toBe(200)
    expect((await replace(small, 8)).status).toBe(200)
    expect((await served.send("DELETE", editOf(first))).status).toBe(204)
    expect((await create(16, { address: one })).status).toBe(507)
    // Neither another network, nor an account, nor this machine.
    const allowed = [{ address: "2001:db8:8::1" }, { address: one, basic: admin }, {}]
    for (const from of allowed) expect((await create(16, from)).status).toBe(201)
    const own = await create(1, { address: one, basic: admin })
    expect((await replace(own, 24)).status).toBe(200)
  })

  it("bound an IPv6 network by its /48, and not another one", async () => {
    // What the tests before have left, once what they deleted is removed.
    const before = charge(1 * kib)
    await untilTotal(before)
    const content = await publish(25 * kib, { address: "2001:db8:7:1::1" })
    expect(content.status).toBe(202)
    const refused = await publish(20 * kib, { address: "2001:db8:7:2::1" })
    expect(refused.status).toBe(507)
    expect(refused.json).toMatchObject({ quota: "network", "max-bytes": 40 * kib })
    expect(refused.text).toContain("2001:db8:7::/48")
    const elsewhere = await publish(20 * kib, { address: "2001:db8:8:2::1" })
    expect(elsewhere.status).toBe(202)
    for (const one of [content, elsewhere]) {
      expect((await service.send("DELETE", editOf(one))).status).toBe(204)
    }
    await untilTotal(before)
  })

  it("bound all of it together, and say so", async () => {
    const used = (await total()).bytes
    const room = quotas.anonymousBytesMax - used - contentOverheadBytes
    const last = await publish(room)
    expect(last.status).toBe(202)
    const refused = await publish(1)
    expect(refused.status).toBe(507)
    expect(refused.json).toMatchObject({ quota: "anonymous", "max-bytes": 100 * kib })
    expect((await publish(1, { basic: admin })).status).toBe(202)
    expect((await service.send("DELETE", editOf(last))).status).toBe(204)
    await untilTotal(used)
    expect((await publish(1)).status).toBe(202)
  })
})

describe("a body without a length", () => {
  it("counts as long as it is, and is cut where the quota ends, with nothing left", async () => {
    const frank = await newAccount("frank")
    const { blobs } = service.service
    expect(await sendChunks("/content", 3, frank)).toBe(202)
    await untilTotal(charge(12 * kib), "frank")
    const before = await service.run(blobs.scan(undefined, 1000))
    expect(await sendChunks("/content", 100, frank)).toBe(507)
    await untilTotal(charge(12 * kib), "frank")
    expect(await service.run(blobs.scan(undefined, 1000))).toEqual(before)
  })
})

describe("a reservation that nobody has settled", () => {
  const reserve = (id: string) =>
    service.run(service.service.usage.submit({
      _tag: "Reserve",
      contentId: id,
      publication: { owner: "grace", atMs: Date.now() },
      reservation: { id: `${id}=blob`, bytes: 1_000, dueMs: Date.now() - 1 }
    }))

  it("ends when it is due: with what the content has stored, or with nothing", async () => {
    const grace = await newAccount("grace")
    const published = await publish(2_000, { basic: grace })
    const id = pathOf(published).slice("/content/".length)
    await untilTotal(charge(2_000), "grace")
    await reserve(id)
    await reserve("never-published")
    expect((await total("grace")).bytes).toBe(charge(2_000) + 2 * charge(1_000))
    await service.run(settleReservations(service.service))
    expect(await total("grace")).toEqual({ bytes: charge(2_000), contents: 1 })
    expect(await service.run(service.service.records.range(reservationsTable, { limit: 10 })))
      .toEqual([])
  })

  it("stays until then", async () => {
    await service.run(service.service.usage.submit({
      _tag: "Reserve",
      contentId: "under-way",
      publication: { owner: "grace", atMs: Date.now() },
      reservation: { id: "under-way=blob", bytes: 1_000, dueMs: Date.now() + reservationMs }
    }))
    const before = await total("grace")
    await service.run(Effect.andThen(settleReservations(service.service), Effect.void))
    expect(await total("grace")).toEqual(before)
  })
})

describe("the listing of content", () => {
  const list = async (query: string, basic: string) => {
    const { text } = await service.send("GET", `/content${query}`, { basic })
    return [...text.matchAll(/<content href="([^"]*)"/g)].map(([, href]) => href)
  }

  it("has the caller's own, newest first, and the use of the quota", async () => {
    const heidi = await newAccount("heidi")
    const hrefs: Array<string> = []
    for (const count of [1, 2, 3]) {
      hrefs.unshift((await publish(count, { basic: heidi })).header("location"))
      await new Promise((resolve) => setTimeout(resolve, 2))
    }
    expect(await list("", heidi)).toEqual(hrefs)
    expect(await list("?order=oldest", heidi)).toEqual(hrefs.toReversed())
    const first = await service.send("GET", "/content?limit=2", { basic: heidi })
    const next = /<([^>]*)>; rel="next"/.exec(first.header("link"))?.[1] ?? ""
    const rest = await service.send("GET", next, { basic: heidi })
    expect(rest.text).toContain(`href="${hrefs[2]}"`)
    await untilTotal(charge(1) + charge(2) + charge(3), "heidi")
    const shown = await service.send("GET", "/content", {
      basic: heidi,
      accept: "application/json"
    })
    expect(shown.json).toMatchObject({
      owner: "heidi",
      "used-bytes": String(charge(1) + charge(2) + charge(3)),
      "max-bytes": String(60 * kib)
    })
    expect((await service.send("GET", "/content?owner=carol", { basic: heidi })).status).toBe(403)
    expect((await service.send("GET", "/content?anonymous=true", { basic: heidi })).status).toBe(
      403
    )
    expect((await service.send("GET", "/content")).status).toBe(401)
  })

  it("has everybody's for an admin, who finds and deletes what strangers published", async () => {
    const stranger = await publish(10)
    const href = stranger.header("location")
    expect(await list("?anonymous=true", admin)).toContain(href)
    expect(await list("", admin)).toContain(href)
    expect(await list("?owner=heidi", admin)).not.toContain(href)
    const oldest = await list("?order=oldest&anonymous=true", admin)
    expect(oldest.at(-1)).toBe(href)
    const page = await service.send("GET", "/content", { basic: admin, accept: "text/html" })
    expect(page.text).toContain(`<form action="${pathOf(stranger)}/removal" method="post">`)
    const deleted = await service.send("POST", `${pathOf(stranger)}/removal`, {
      basic: admin,
      accept: "text/html"
    })
    expect([deleted.status, deleted.header("location")]).toEqual([303, `${service.base}/content`])
    expect((await service.send("GET", pathOf(stranger))).status).toBe(410)
    await until(async () => !(await list("", admin)).includes(href))
    expect(await list("?anonymous=true", admin)).not.toContain(href)
  })

  it("says when strangers' content expires, and what all of it uses", async () => {
    const basic = await newAccount("ivan")
    const own = (await publish(1, { basic })).header("location")
    const href = (await publish(2)).header("location")
    const listed = async (accept: string, query = "") =>
      await service.send("GET", `/content${query}`, { basic: admin, accept })
    const { content } = (await listed("application/json")).json as Listing
    const of = (one: string) => content.find((entry) => entry.href === one)
    const { expires = "", modified = "" } = of(href) ?? {}
    expect(Date.parse(expires) - Date.parse(modified)).toBe(30 * 24 * 60 * 60_000)
    expect(of(own)).not.toHaveProperty("expires")
    expect((await listed("application/xml")).text).toContain(`expires="${expires}"`)
    expect((await listed("text/html")).text).toContain("Expires")
    const strangers = (await listed("application/json", "?anonymous=true")).json as Listing
    const { bytes } = await service.run(service.service.usage.total(undefined))
    expect(bytes).toBeGreaterThan(0)
    expect(strangers).toMatchObject({
      "used-bytes": String(bytes),
      "max-bytes": String(quotas.anonymousBytesMax)
    })
    await service.run(service.service.usage.readAnonymous)
    const metrics = makeMetricsText({ ...service.service, nowMs: Date.now })()
    expect(metrics).toContain(`restante_anonymous_content_bytes ${bytes}\n`)
    expect(metrics).toContain(
      `restante_anonymous_content_limit_bytes ${quotas.anonymousBytesMax}\n`
    )
  })

  it("lets nobody else delete", async () => {
    const content = await publish(10)
    expect((await service.send("POST", `${pathOf(content)}/removal`)).status).toBe(401)
    expect((await service.send("GET", pathOf(content))).status).toBe(200)
  })
})
