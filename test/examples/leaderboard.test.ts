/** The leaderboard: its simulation on a few seeds, and its cells. */
import { expect, it } from "vitest"
import { leaderboard } from "../../examples/leaderboard/index.ts"
import { leaderboardSimulation } from "../../examples/leaderboard/simulation.ts"
import { simulate, testTable } from "../../runtime/testing/index.ts"

it("counts each score once, whatever happens to the nodes", async () => {
  const { answered, coverage } = await simulate({ ...leaderboardSimulation, seeds: 5 })
  expect(answered).toBeGreaterThan(50)
  expect(coverage[0]?.missing).toEqual([])
})

it("orders by points and then by name, and keeps the last keys only", () => {
  const tests = testTable(leaderboard)
  const best = [{ player: "ben", points: 5 }, { player: "ann", points: 3 }]
  const board = { _tag: "Open", ranking: best, total: 8 } as const
  const score = { _tag: "Score", player: "ann", points: 2, key: "k" } as const
  tests.given(board, { head: 100 }).when(score).then({
    become: {
      _tag: "Open",
      ranking: [{ player: "ann", points: 5 }, { player: "ben", points: 5 }],
      total: 10
    },
    append: [JSON.stringify({ player: "ann", points: 2, key: "k" })],
    removeItems: [1],
    reply: { points: 5, rank: 1 }
  })
  tests.given(board, { keys: { k: 7 } }).when(score).then({ reply: { points: 3, rank: 2 } })
  tests.given(board).when({ ...score, points: 0 }).then({ refuse: "NoPoints" })
  tests.given(board).when({ _tag: "Place", player: "zoe" })
    .then({ reply: { points: 0, rank: null } })
  tests.given(board).when({ _tag: "Top", count: 1 })
    .then({ reply: { total: 8, best: [{ player: "ben", points: 5 }] } })
  const ranking = Array.from({ length: 1_000 }, (_, at) => ({ player: `p${at}`, points: 1 }))
  tests.given({ _tag: "Open", ranking, total: 1_000 }).when(score).then({ refuse: "Full" })
  expect(tests.coverage().missing).toEqual([])
})
