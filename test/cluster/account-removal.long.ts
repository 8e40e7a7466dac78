/**
 * A node dies while accounts delete what they owned, on two nodes and one NATS server: the other
 * node continues, whichever of them had the accounts and the mailboxes.
 */
import { afterAll, beforeAll, expect, it } from "vitest"
import { asAdmin, basic, expectStatus, postXml, send } from "../e2e/client.ts"
import { cleanUp, eventually, type Service, start } from "../e2e/process.ts"
import { type NatsServer, startServer } from "../runtime/nats/servers.ts"

const accounts = ["ector", "gareth", "kay", "lucan", "pelleas", "tor"]
const mailboxesEach = 30
const testMs = 240_000

let nats: NatsServer
let front: Service
let other: Service

beforeAll(async () => {
  nats = await startServer()
  front = await start({ env: { NATS_URL: nats.url, NODE_ID: "front" } })
  other = await start({ env: { NATS_URL: nats.url, NODE_ID: "other" } })
})
afterAll(async () => {
  cleanUp()
  await nats.close()
})

const pathsOf = (name: string): ReadonlyArray<string> =>
  Array.from({ length: mailboxesEach }, (_, n) => `/mailboxes/${name}-${n}`)

/** Creates an account with its mailboxes, and returns its credentials. */
const join = async (name: string) => {
  const body = `<account><name>${name}</name></account>`
  const { text } = expectStatus(await postXml(front.url, "/accounts", body, asAdmin), 201)
  const token = /<token[^>]*>([^<]+)</.exec(text)?.[1] ?? ""
  const own = { authorization: basic(name, token) }
  for (const path of pathsOf(name)) {
    const mailbox = `<mailbox><name>${path.slice("/mailboxes/".length)}</name></mailbox>`
    expectStatus(await postXml(front.url, "/mailboxes", mailbox, own), 201)
  }
  return own
}

it("is complete after a node of two has died in the middle", async () => {
  const credentials = await Promise.all(accounts.map(join))
  for (const name of accounts) {
    const path = `/accounts/${name}?owned=delete`
    expectStatus(await send(front.url, path, { method: "DELETE", headers: asAdmin }), 202)
  }
  await other.kill()
  for (const path of accounts.flatMap(pathsOf)) {
    await eventually(testMs, `${path} is gone`, async () => {
      const { status } = await send(front.url, path, { headers: asAdmin })
      return status === 410 ? true : undefined
    }, 500)
  }
  for (const headers of credentials) {
    expect((await send(front.url, "/mailboxes", { headers })).status).toBe(401)
  }
}, testMs)
