/** The map of shards on the page of the cluster: owners, handoffs, and shards without an owner. */
import { expect, it } from "vitest"
import type { ClusterStatus, ShardHolding } from "../../http/resources/cluster/cluster-status.ts"
import { shardMap } from "../../http/resources/cluster/shard-map.ts"

const statusOf = (
  holdings: ReadonlyArray<ShardHolding>,
  moves: Readonly<Record<number, string>> = {}
): ClusterStatus => {
  const owners: Array<string | undefined> = []
  for (const { node, shards } of holdings) for (const shard of shards) owners[shard] = node
  const targets = owners.map((owner, shard) => moves[shard] ?? owner ?? "a")
  return { self: "a", nodes: [], owners, targets, holdings }
}

const cellsOf = (status: ClusterStatus): ReadonlyArray<string> => {
  const found = shardMap(status).text.matchAll(
    /<i class="cell ([a-z0-9 ]+)" id="shard-(\d+)" title="([^"]+)">(.)<\/i>/g
  )
  return [...found].map(([, marks, shard, title, letter]) =>
    `${shard} ${letter} ${marks}: ${title}`
  )
}

it("has a cell for each shard, in the frame of its node", () => {
  const status = statusOf([
    { node: "a", shards: [0, 3] },
    { node: "b", shards: [1] },
    { node: "c", shards: [] },
    { node: undefined, shards: [2] }
  ], { 3: "c" })
  expect(cellsOf(status)).toEqual([
    "0 A n0: Shard 0",
    "3 A n0 handoff: Shard 3, in handoff to c",
    "1 B n1: Shard 1",
    "2 ? none: Shard 2"
  ])
  const words = shardMap(status).text.replaceAll(/<div[\s\S]*?<\/div>|<[^>]*>/g, "")
  expect(words.split("\n").filter((line) => line !== "")).toEqual([
    "A a 2 shards, 1 in handoff",
    "B b 1 shard",
    "C c 0 shards",
    "? no owner 1 shard",
    "A has an owner, A is in handoff to another node, ? has no owner."
  ])
})

it("gives many nodes other letters before it repeats colors, and escapes their names", () => {
  const nodes = Array.from({ length: 60 }, (_, at) => `node-<${at}>`)
  const marks = cellsOf(statusOf(nodes.map((node, at) => ({ node, shards: [at] }))))
  expect([marks[0], marks[8], marks[51], marks[52]]).toEqual([
    "0 A n0: Shard 0",
    "8 I n0: Shard 8",
    "51 z n3: Shard 51",
    "52 + n4: Shard 52"
  ])
  const escaped = shardMap(statusOf([{ node: "<script>", shards: [] }])).text
  expect(escaped).toContain("The shards of &lt;script&gt;")
  expect(escaped).not.toContain("<script>")
})
