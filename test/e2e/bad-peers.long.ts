/** Bad callbacks and bad messages do not delay other registrations and fetches. */
import { createGzip } from "node:zlib"
import { afterAll, expect, it } from "vitest"
import { asAdmin, childOf, expectStatus, mailboxOf, notification, parseXml, pathOf, postXml,
  send } from "./client.ts"
import { closeFaults, fullBacklog, rawServer, sendSlowly } from "./faults.ts"
import { cleanUp, eventually, type Service, start } from "./process.ts"
import { closeReceivers, echoes, pushed, type Received, receiver,
  takesReceipts } from "./receivers.ts"

const endsWithinMs = 120_000
const bombBytes = 256 * 1024 * 1024
const env = { OUTBOUND_ALLOW: "127.0.0.0/8", RETRY_SCHEDULE: "0s,1h", DRAIN_TIMEOUT: "1s" }

afterAll(() => {
  closeFaults()
  closeReceivers()
  cleanUp()
})

const open = async (service: Service, settings: string): Promise<string> => {
  const document = `<mailbox>${settings}</mailbox>`
  const made = await postXml(service.url, "/mailboxes", document, asAdmin)
  return mailboxOf(expectStatus(made, 201)).path
}

const resourceOf = async (service: Service, path: string) =>
  parseXml(expectStatus(await send(service.url, path, { headers: asAdmin }), 200).text)

it("pushes to the healthy callback while others hang, fail and never verify", async () => {
  const service = await start({ env })
  const mailbox = await open(service, "")
  const pushes: Array<string> = []
  const origin = await receiver((received, response) => {
    if (!received.path.startsWith("/unverified") && echoes(received, response)) return
    if (received.path === "/hanging") return
    if (received.path === "/failing") return void response.writeHead(500).end()
    if (received.path === "/gone") return void response.writeHead(410).end()
    if (received.path.startsWith("/unverified?")) return void response.end("something else")
    for (const one of pushed(received.body)) {
      pushes.push(`${received.path} ${one.attributes["href"]}`)
    }
    response.writeHead(204).end()
  })
  const register = async (callback: string): Promise<string> => {
    const document = `<registration><callback>${callback}</callback></registration>`
    const made = await postXml(service.url, `${mailbox}/registrations`, document, asAdmin)
    return pathOf(expectStatus(made, 201).headers.get("location"))
  }
  const unreachable = await register(`${await fullBacklog()}/hook`)
  const [hanging = "", failing = "", gone = "", unverified = "", healthy = ""] = await Promise.all(
    ["hanging", "failing", "gone", "unverified", "healthy"].map((name) =>
      register(`${origin}/${name}`)
    )
  )
  for (const path of [hanging, failing, gone, healthy]) {
    await eventually(
      endsWithinMs,
      `${path} is active`,
      async () =>
        (await resourceOf(service, path)).attributes["status"] === "active" ? true : undefined
    )
  }
  const deposits: Array<string> = []
  for (let n = 0; n < 250; n += 1) {
    const made = await postXml(service.url, mailbox, notification(`n${n}`))
    deposits.push(expectStatus(made, 202).headers.get("location") ?? "")
  }
  await eventually(
    endsWithinMs,
    "all are pushed",
    () => pushes.length >= deposits.length ? true : undefined
  )
  expect(pushes).toEqual(deposits.map((href) => `/healthy ${href}`))
  const failed = await eventually(endsWithinMs, "the failing one shows it", async () => {
    const found = await resourceOf(service, failing)
    return childOf(found, "attempts").text === "0" ? undefined : found
  })
  expect(failed.attributes["status"]).toBe("active")
  expect(childOf(failed, "code").text).toBe("500")
  expect(childOf(failed, "problem").text).toBe("answered 500")
  expect(childOf(failed, "cursor").text).toBe("0")
  expectStatus(await send(service.url, gone, { headers: asAdmin }), 404, 410)
  for (const path of [unverified, unreachable]) {
    expect((await resourceOf(service, path)).attributes["status"]).toBe("unverified")
  }
  expect((await service.stop()).code).toBe(0)
})

it("fetches the healthy message while others drip, burst and never end", async () => {
  const service = await start({ env })
  const limit = "<fetch-limit>100000</fetch-limit>"
  const mailbox = await open(service, `<fetch>eager</fetch>${limit}`)
  const receipts = new Map<string, string>()
  const answer = ({ body, method, path }: Received): boolean => {
    if (method === "POST") receipts.set(path, body)
    return method === "POST"
  }
  const origin = await receiver((received, response) => {
    if (takesReceipts(received, response)) return
    if (answer(received)) return void response.writeHead(202).end()
    const { path } = received
    if (path === "/bomb") {
      response.writeHead(200, { "content-type": "text/plain", "content-encoding": "gzip" })
      const packed = createGzip()
      packed.pipe(response)
      packed.end(Buffer.alloc(bombBytes))
    } else if (path === "/endless") {
      response.writeHead(200, { "content-type": "text/plain" })
      const more = (): void => {
        while (!response.destroyed && response.write(Buffer.alloc(16_384)));
      }
      response.on("drain", more)
      more()
    } else if (path === "/forbidden") response.writeHead(403).end()
    else response.writeHead(200, { "content-type": "text/plain" }).end("well")
  })
  const drip = await rawServer((socket) => {
    socket.once("data", () => socket.write("HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n"))
    sendSlowly(socket, "x", 1_000)
  })
  const deposit = async (uri: string): Promise<string> => {
    const document = notification("x").replace(/<url>.*<\/url>/, `<url>${uri}</url>`)
    const made = await postXml(service.url, mailbox, document, asAdmin)
    return pathOf(expectStatus(made, 202).headers.get("location"))
  }
  const bad: Array<string> = []
  for (let n = 0; n < 8; n += 1) bad.push(await deposit(`${drip}/${n}`))
  for (const path of ["/bomb", "/endless", "/forbidden"]) bad.push(await deposit(origin + path))
  const healthy = await deposit(`${origin}/well`)
  const cached = await eventually(
    endsWithinMs,
    "the healthy one is fetched",
    async () => (await resourceOf(service, healthy)).children.find(({ name }) => name === "cached")
  )
  expect(cached.attributes).toMatchObject({ type: "text/plain", length: "4" })
  for (const path of ["/bomb", "/endless", "/forbidden"]) {
    const receipt = await eventually(endsWithinMs, `${path} is reported`, () => receipts.get(path))
    expect(parseXml(receipt).attributes["status"], receipt).toBe("problem")
  }
  for (const path of bad) {
    expect((await resourceOf(service, path)).children.some(({ name }) => name === "cached")).toBe(
      false
    )
  }
  expectStatus(await send(service.url, "/readyz"), 200)
  expect((await service.stop()).code).toBe(0)
})
