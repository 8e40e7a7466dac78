/** Scores of three players, one of them sent twice, and the two best. */
import { memory, startNode } from "@restante/runtime"
import { leaderboard } from "./index.ts"

const node = await startNode({ actors: [leaderboard], store: memory() })
const board = leaderboard("chess")
const scores = [["ann", 3, "k1"], ["ben", 5, "k2"], ["ann", 4, "k3"], ["ann", 4, "k3"]] as const
for (const [player, points, key] of scores) {
  const place = await node.ask(board, { _tag: "Score", player, points, key })
  console.log(player, place)
}
console.log(await node.ask(board, { _tag: "Top", count: 2 }))
await node.stop()
