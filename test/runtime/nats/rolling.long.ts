/** A rolling restart of nodes, on a cluster of servers. */
import { describe, expect, it } from "vitest"
import { natsStorage } from "../../../runtime/nats/storage/storage.ts"
import { ids, load, type Node, settled, start } from "./nodes.ts"
import { startCluster } from "./servers.ts"

/** No node dies here, so a busy machine must not let a membership expire. */
const limits = {}

/** An ask that is lost ends at its deadline; one that a busy machine delays must not. */
const askDeadlineMs = 60_000

describe("three nodes on three servers", () => {
  it("answer every ask during a rolling restart, and retain what they answered", async () => {
    const cluster = await startCluster(3)
    const storage = natsStorage()
    let nodes: Array<Node> = []
    const names = ["a", "b", "c"]
    const begin = async (n: number) => {
      const url = cluster.urls[n] ?? ""
      nodes.push(await start({ name: names[n] ?? "", storage, url, limits, askDeadlineMs }))
    }
    for (const n of names.keys()) await begin(n)
    await settled(nodes)
    let there: ReadonlyArray<Node> = nodes
    const stop = load(() => there)
    for (const n of names.keys()) {
      const [leaving, ...others] = nodes
      there = others
      await leaving?.leave()
      nodes = others
      await begin(n)
      await settled(nodes)
    }
    const { counts, failures } = await stop()
    expect(failures).toEqual([])
    const read = (id: string) => nodes[0]?.ask(id, { _tag: "Read" })
    for (const id of ids) expect(await read(id)).toMatchObject({ count: counts.get(id) })
    await Promise.all(nodes.map(({ leave }) => leave()))
    await cluster.close()
  }, 120_000)
})
