/** SIGTERM during attempts. */
import type { ServerResponse } from "node:http"
import { afterAll, expect, it } from "vitest"
import { asAdmin, expectStatus, mailboxOf, notification, parseXml, pathOf, postXml,
  send } from "./client.ts"
import { cleanUp, eventually, type Service, start, temporaryFolder } from "./process.ts"
import { closeReceivers, echoes, type Received, receiver, takesReceipts } from "./receivers.ts"

const endsWithinMs = 120_000
const count = 20

afterAll(() => {
  closeReceivers()
  cleanUp()
})

/** A peer that responds to verifications at once, and to other requests after `answer`. */
const waitingPeer = async () => {
  const requests: Array<Received> = []
  const waiting: Array<ServerResponse> = []
  let answering = false
  const origin = await receiver((received, response) => {
    if (echoes(received, response) || takesReceipts(received, response)) return
    requests.push(received)
    if (answering) response.writeHead(202).end()
    else waiting.push(response)
  })
  const answer = (): void => {
    answering = true
    for (const response of waiting.splice(0)) response.writeHead(202).end()
  }
  return { origin, requests, answer }
}

const begin = async (service: Service, origin: string): Promise<ReadonlyArray<string>> => {
  const { url } = service
  const settings = "<mailbox><receipts>received</receipts></mailbox>"
  const made = await postXml(url, "/mailboxes", settings, asAdmin)
  const mailbox = mailboxOf(expectStatus(made, 201))
  const callback = `<registration><callback>${origin}/hook</callback></registration>`
  const registered = await postXml(url, `${mailbox.path}/registrations`, callback, asAdmin)
  const registration = pathOf(expectStatus(registered, 201).headers.get("location"))
  await eventually(endsWithinMs, "the callback is active", async () => {
    const { text } = await send(url, registration, { headers: asAdmin })
    return parseXml(text).attributes["status"] === "active" ? true : undefined
  })
  const paths: Array<string> = []
  for (let n = 0; n < count; n += 1) {
    const document = notification(`n${n}`).replace("<item>", `<to>${origin}/in/${n}</to><item>`)
    const queued = await postXml(url, "/outgoing/admin", document, asAdmin)
    paths.push(pathOf(expectStatus(queued, 202).headers.get("location")))
  }
  const message = notification("message").replace("http://sender.test", origin)
  expectStatus(await postXml(url, mailbox.path, message, asAdmin), 202)
  return paths
}

/** Equal for two attempts at the same delivery, and only for those. */
const identity = ({ headers, path }: Received): string =>
  `${path} ${headers["idempotency-key"] ?? headers["webhook-id"]}`

const isSent = async (service: Service, path: string): Promise<true | undefined> => {
  const { text } = expectStatus(await send(service.url, path, { headers: asAdmin }), 200)
  return parseXml(text).attributes["status"] === "sent" ? true : undefined
}

const env = { OUTBOUND_ALLOW: "127.0.0.0/8", RETRY_SCHEDULE: "0s,200ms,200ms" }

it("ends in time, and repeats the interrupted attempts", async () => {
  const { answer, requests, origin } = await waitingPeer()
  const dataDir = temporaryFolder()
  const first = await start({ dataDir, env: { ...env, DRAIN_TIMEOUT: "1s" } })
  const paths = await begin(first, origin)
  // At most eight attempts of one origin are in flight.
  await eventually(
    endsWithinMs,
    "the origin is at its limit",
    () => requests.length >= 8 ? true : undefined
  )
  first.child.kill("SIGTERM")
  expect(await first.end(endsWithinMs)).toEqual({ code: 0, signal: null })
  const before = requests.map(identity)
  answer()
  const second = await start({ dataDir, env })
  for (const path of paths) await eventually(endsWithinMs, path, () => isSent(second, path))
  await eventually(
    endsWithinMs,
    "the push and the receipt",
    () =>
      ["/hook", "/message"].every((path) =>
          requests.slice(before.length).some((one) => one.path === path)
        )
        ? true
        : undefined
  )
  const after = requests.slice(before.length).map(identity)
  expect(before.filter((one) => !after.includes(one))).toEqual([])
  for (let n = 0; n < count; n += 1) {
    const keys = requests.filter(({ path }) => path === `/in/${n}`).map(identity)
    expect(new Set(keys).size, `/in/${n}`).toBe(1)
    expect(after.filter((one) => one === keys[0]), `/in/${n}`).toHaveLength(1)
  }
  expect((await second.stop()).code).toBe(0)
})

it("stores the results of attempts while it drains", async () => {
  const { answer, requests, origin } = await waitingPeer()
  const dataDir = temporaryFolder()
  const first = await start({ dataDir, env })
  const document = notification("late").replace("<item>", `<to>${origin}/in</to><item>`)
  const queued = await postXml(first.url, "/outgoing/admin", document, asAdmin)
  const path = pathOf(expectStatus(queued, 202).headers.get("location"))
  await eventually(endsWithinMs, "it is tried", () => requests.length > 0 ? true : undefined)
  const stopping = first.stop()
  await eventually(
    endsWithinMs,
    "nobody listens",
    () => fetch(first.url).then(() => undefined, () => true)
  )
  answer()
  expect((await stopping).code).toBe(0)
  const second = await start({ dataDir, env })
  await eventually(endsWithinMs, path, () => isSent(second, path))
  expect(requests.map(identity)).toHaveLength(1)
  await second.stop()
})
