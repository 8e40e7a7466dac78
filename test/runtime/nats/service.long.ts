/**
 * The built binary over NATS: one node that keeps everything through a restart, and says what keeps
 * it from starting. Several nodes are in `test/cluster`.
 */
import { readFileSync } from "node:fs"
import { join } from "node:path"
import { afterAll, describe, expect, it } from "vitest"
import { asAdmin, childOf, expectStatus, notification, parseXml, postXml,
  send } from "../../e2e/client.ts"
import { closedPort } from "../../e2e/faults.ts"
import { History } from "../../e2e/history.ts"
import { cleanUp, eventually, launch, start, temporaryFolder } from "../../e2e/process.ts"
import { type NatsServer, startServer } from "./servers.ts"

const shownWithinMs = 120_000

const servers: Array<NatsServer> = []

const natsServer = async (): Promise<NatsServer> => {
  const server = await startServer()
  servers.push(server)
  return server
}

afterAll(async () => {
  cleanUp()
  await Promise.all(servers.map((server) => server.close()))
})

describe("one node", () => {
  it("does it all, and keeps it through a restart", async () => {
    const nats = await natsServer()
    const port = String(await closedPort())
    const base = `http://127.0.0.1:${port}`
    const dataDir = temporaryFolder()
    const env = {
      NATS_URL: nats.url,
      PORT: port,
      BASE_URL: base,
      OUTBOUND_ALLOW: "127.0.0.0/8",
      RETRY_SCHEDULE: "0s,200ms,200ms"
    }
    const first = await start({ dataDir, env })
    const name = readFileSync(join(dataDir, "node-id"), "utf8").trim()
    expect(first.output).toContain(`node ${name} of the cluster on NATS at ${nats.url}`)
    const history = new History()
    // The history asks at paths: the URIs given out begin with where the service listens.
    const made = expectStatus(
      await postXml(base, "/mailboxes", "<mailbox><name>own</name></mailbox>", asAdmin),
      201
    )
    const uri = made.headers.get("location") ?? ""
    const document = notification("to-own").replace("<item>", `<to>${uri}</to><item>`)
    const queued = expectStatus(await postXml(base, "/outgoing/admin", document, asAdmin), 202)
    const sent = await eventually(shownWithinMs, "it is sent", async () => {
      const location = queued.headers.get("location") ?? ""
      const shown = parseXml(expectStatus(await send("", location, { headers: asAdmin }), 200).text)
      return shown.attributes["status"] === "waiting" ? undefined : shown
    })
    expect(childOf(sent, "recipient").attributes).toMatchObject({ status: "success" })
    expect((await first.stop()).code).toBe(0)

    // From here on URIs begin as the history expects.
    const second = await start({ dataDir, env: { NATS_URL: nats.url } })
    const box = await history.open(second.url, "alice")
    if (box === undefined) throw new Error("no mailbox was made")
    for (let n = 0; n < 20; n += 1) await history.deposit(second.url, box, `n${n}`)
    await history.remove(second.url, box)
    const small = await history.publish(second.url, Buffer.from("small"))
    await history.publish(second.url, Buffer.alloc(300_000, "large"))
    if (small !== undefined) await history.overwrite(second.url, small, Buffer.from("other"))
    const session = await history.begin(second.url)
    if (session === undefined) throw new Error("no session was begun")
    await history.answer(second.url, session, "name", "Galahad")
    await history.once(second.url, "/mailboxes", "<mailbox><name>once</name></mailbox>", "once")
    expect((await second.stop()).code).toBe(0)

    const third = await start({ dataDir, env: { NATS_URL: nats.url } })
    expect(readFileSync(join(dataDir, "node-id"), "utf8").trim()).toBe(name)
    await history.verifyBox(third.url, box)
    for (const content of history.contents) await history.verifyContent(third.url, content)
    await history.verifySession(third.url, session)
    const [once] = history.keyed
    const again = await postXml(third.url, once?.path ?? "", once?.body ?? "", once?.headers)
    expect(again.text).toBe(once?.answer?.text)
    const own = await send(third.url, "/mailboxes/own", { headers: asAdmin })
    expect(expectStatus(own, 200).text).toContain("to-own")
    expectStatus(await send(third.url, "/readyz"), 200)
    await third.stop()
  })

  it("says what keeps it from starting", async () => {
    const nats = await natsServer()
    const NATS_URL = nats.url
    const four = await start({ env: { NATS_URL, NODE_ID: "four" } })
    expect(four.output).toContain("node four of the cluster")
    await four.stop()
    const two = launch({ env: { NATS_URL, CLUSTER_BUCKETS: "2" } })
    expect((await two.end()).code).toBe(75)
    expect(two.output).toContain("4 buckets")
    expect(two.output).toContain("CLUSTER_BUCKETS")
    await nats.stop()
    const alone = launch({ env: { NATS_URL } })
    expect((await alone.end()).code).toBe(75)
    expect(alone.output).toContain(`NATS at ${NATS_URL} cannot be used`)
    expect(alone.output).not.toMatch(/ at .*:\d+:\d+/)
  })
})
