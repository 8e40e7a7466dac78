/** Defined actors on two nodes of a cluster: `nats()` as their store. */
import { afterAll, beforeAll, expect, it } from "vitest"
import { startNode } from "../../../runtime/main.ts"
import { nats } from "../../../runtime/nats/main.ts"
import { counter } from "../definition/examples/counter.ts"
import { startServer } from "./servers.ts"

let server: Awaited<ReturnType<typeof startServer>>

beforeAll(async () => {
  server = await startServer()
})

afterAll(() => server.close())

const ids = Array.from({ length: 16 }, (_, at) => `visits-${at}`)

it("asks actors of other nodes, which go on when a node stops", async () => {
  const start = (node: string) =>
    startNode({ actors: [counter], store: nats(server.url, { node, secret: "of the test" }) })
  const first = await start("first")
  const second = await start("second")
  const owners = () => first.system.cluster().owners
  await expect.poll(() => new Set(owners())).toEqual(new Set(["first", "second"]))
  const add = (node: typeof first) =>
    Promise.all(ids.map((id) => node.ask(counter(id), { _tag: "Add", by: 1 })))
  expect(await add(first)).toEqual(ids.map(() => 1))
  expect(await add(second)).toEqual(ids.map(() => 2))
  await first.stop()
  expect(await add(second)).toEqual(ids.map(() => 3))
  await second.stop()
})

it("needs a secret, unless only programs on this machine can reach the servers", () => {
  const local = ["nats://localhost:4222", "127.0.0.1:4222", "tls://[::1]:4222"]
  expect(nats(local).name).toBe(local.join(", "))
  const far = "nats://post:hidden@10.0.0.7:4222"
  expect(() => nats([...local, far])).toThrow(
    /^the nodes on nats:\/\/10\.0\.0\.7:4222 have no secret/
  )
  expect(() => nats("nats://localhost.example")).toThrow("give nats() the same `secret`")
  expect(nats(far, { secret: "of the test" }).name).toContain("10.0.0.7")
})
