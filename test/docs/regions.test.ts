/**
 * docs/regions.md: its leaf node connection carries mirrors of the streams that the nodes make, and
 * a promoted mirror takes the writes of a node, by the sequences of the first region.
 */
import { connect, type NatsConnection } from "@nats-io/transport-node"
import { Layer } from "effect"
import { afterAll, beforeAll, expect, it } from "vitest"
import { connection, Nats } from "../../runtime/nats/connection/connection.ts"
import { natsRegistry } from "../../runtime/nats/registry/registry.ts"
import { callApi, ensureBucket, expectSequence, write } from "../../runtime/nats/stream/index.ts"
import { Registry } from "../../runtime/ports/registry.ts"
import { eventually } from "../e2e/process.ts"
import { freePorts, type NatsServer, startServer } from "../runtime/nats/servers.ts"
import { fromLayer } from "../suites/harness.ts"
import { blocksOf, textOf } from "./pages.ts"

const page = "docs/regions.md"
const user = "restante"
const pass = "a-password"
const mirroredWithinMs = 30_000
const requestMs = 5_000
const bucket = "actors-0"
const stream = `KV_${bucket}`

const [leafListen = "", leafRemote = ""] = blocksOf(page)
  .filter(({ language }) => language === "conf").map(({ text }) => text)

/** A configuration whose variables have these values. */
const filled = (text: string, values: Readonly<Record<string, string>>): string =>
  Object.entries(values).reduce((all, [name, value]) => all.replaceAll(`$${name}`, value), text)

const accounts = filled(textOf("deploy/manifests/nats/accounts.conf"), {
  NATS_USER: user,
  NATS_PASSWORD: pass
})

const servers: Array<NatsServer> = []
const connections: Array<NatsConnection> = []

const start = async (domain: string, leaf: string): Promise<NatsServer> => {
  const jetstream = `domain: ${domain}`
  const server = await startServer({ extra: `${accounts}\n${leaf}`, jetstream, user, pass })
  servers.push(server)
  return server
}

const open = async ({ url }: NatsServer) => {
  const nats = connection({ servers: [url], name: "test", user, pass })
  return fromLayer(Nats, nats, async () => {})
}

let primary: NatsServer
let standby: NatsServer

beforeAll(async () => {
  const [port = 0] = await freePorts(1)
  const listen = filled(leafListen, { LEAF_PASSWORD: pass })
  primary = await start("primary", listen.replace("0.0.0.0:7422", `127.0.0.1:${port}`))
  const url = `"nats-leaf://standby:${pass}@127.0.0.1:${port}"`
  standby = await start("standby", filled(leafRemote, { LEAF_URL: url }))
})

afterAll(async () => {
  for (const nc of connections) await nc.close()
  for (const server of servers) await server.close()
})

interface Described {
  readonly config: Readonly<Record<string, unknown>>
  readonly state: { readonly last_seq: number }
}

/** A request to the JetStream API, without what a node adds. */
const asked = async (nc: NatsConnection, call: string, data: object): Promise<unknown> =>
  (await nc.request(`$JS.API.${call}`, JSON.stringify(data), { timeout: requestMs })).json()

const mirrorOf = (name: string) => ({ name, external: { api: "$JS.primary.API" } })

it("promotes a mirror, with the sequences that the fences compare", async () => {
  const first = await open(primary)
  const subject = `$KV.${bucket}.0.mailbox.alice.state`
  await ensureBucket(first.api, bucket)
  const message = { subject, data: "a state", headers: expectSequence(0) }
  // The first message of a stream has the sequence 1 in any case, so another one comes before.
  await write(first.api, [{ ...message, subject: `$KV.${bucket}.other` }])
  expect(await write(first.api, [message])).toEqual({ _tag: "Stored", first: 2 })
  const { config } = await callApi<Described>(first.api, `STREAM.INFO.${stream}`, {})
  const { allow_atomic: _, subjects, ...copied } = config

  const nc = await connect({ servers: standby.url, user, pass })
  connections.push(nc)
  const mirror = mirrorOf(stream)
  const create = `STREAM.CREATE.${stream}`
  expect(await asked(nc, create, { ...copied, mirror, subjects })).toMatchObject({
    error: { err_code: 10_034 }
  })
  expect(await asked(nc, create, { ...copied, mirror, allow_atomic: true })).toMatchObject({
    error: { err_code: 10_198 }
  })
  expect(await asked(nc, create, { ...copied, mirror })).not.toHaveProperty("error")
  await eventually(mirroredWithinMs, "the mirror has both messages", async () => {
    const found = await asked(nc, `STREAM.INFO.${stream}`, {})
    // The server's own answer.
    return (found as Described).state.last_seq === 2 ? true : undefined
  })
  await first.close()
  await primary.stop()

  const second = await open(standby)
  expect(await write(second.api, [message])).toMatchObject({ _tag: "Rejected", code: 503 })
  const promoted = { ...copied, subjects, allow_atomic: true, allow_direct: true }
  expect(await asked(nc, `STREAM.UPDATE.${stream}`, promoted)).not.toHaveProperty("error")
  await ensureBucket(second.api, bucket)
  expect(await write(second.api, [message])).toMatchObject({ _tag: "Rejected", code: 10_071 })
  const fenced = { ...message, headers: expectSequence(2) }
  const item = { ...message, subject: `$KV.${bucket}.0.mailbox.alice.log.1` }
  expect(await write(second.api, [fenced, item])).toEqual({ _tag: "Stored", first: 3 })
  await second.close()
})

it("has no mirror of the registry, whose markers a mirror may not have", async () => {
  await primary.restart()
  const nats = connection({ servers: [primary.url], name: "test", user, pass })
  const { close } = await fromLayer(Registry, Layer.provide(natsRegistry, nats), async () => {})
  const first = await open(primary)
  const { config } = await callApi<Described>(first.api, "STREAM.INFO.KV_cluster", {})
  await first.close()
  await close()
  const { allow_atomic: _, subjects: __, ...copied } = config
  const [nc] = connections
  const create = "STREAM.CREATE.KV_cluster"
  const answer = await asked(nc ?? await connect({ servers: standby.url, user, pass }), create, {
    ...copied,
    mirror: mirrorOf("KV_cluster")
  })
  expect(answer).toMatchObject({ error: { err_code: 10_052 } })
})
