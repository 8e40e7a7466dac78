/** What the leaderboard must hold on a cluster with faults. */
import { Schema } from "@restante/runtime"
import { type ClientAttempt, request, type SimulateOptions,
  withMessage } from "@restante/runtime/testing"
import { leaderboard } from "./index.ts"

const boards = ["chess", "darts"].map((id) => leaderboard(id))
const players = ["ann", "ben", "cleo"]

type Board = typeof leaderboard.behavior.initial

const isPlace = Schema.is(Schema.Struct({ points: Schema.Int }))
const playerOf = Schema.is(Schema.Struct({ player: Schema.String }))

/** The points of the attempts of a player, each key once. */
const pointsOf = (attempts: ReadonlyArray<ClientAttempt>, player: string): number => {
  const scores = withMessage(attempts, leaderboard, "Score").map(({ message }) => message)
    .filter((score) => score.player === player)
  const byKey = new Map(scores.map(({ key, points }) => [key, points]))
  return [...byKey.values()].reduce((sum, points) => sum + points, 0)
}

/** A client must see at least the points that it has seen before. */
const unseenWrite = (attempts: ReadonlyArray<ClientAttempt>): string | undefined => {
  const seen = new Map<string, number>()
  for (const { client, message, reply, to } of attempts) {
    if (!playerOf(message) || !isPlace(reply)) continue
    const key = `${client} ${to.id} ${message.player}`
    const before = seen.get(key) ?? 0
    if (reply.points < before) return `${key} has ${reply.points} points after ${before}`
    seen.set(key, reply.points)
  }
  return undefined
}

/** Clients that add scores, repeat those without an answer, and read places and the best. */
export const leaderboardSimulation = {
  behaviors: [leaderboard],
  clients: (draw, { number }) => {
    const player = draw.pick(players)
    const score = {
      _tag: "Score",
      player,
      points: 1 + draw.below(9),
      key: `key-${number}`
    } as const
    const read = draw.pick([{ _tag: "Place", player }, { _tag: "Top", count: 2 }] as const)
    return request(draw.pick(boards), draw.chance(0.6) ? score : read, { attempts: 3 })
  },
  model: "table",
  invariants: [
    {
      name: "the total is the sum of the points",
      always: ({ stateOf }, board) => {
        const { ranking, total } = stateOf<Board>(board)
        const sum = ranking.reduce((sum, { points }) => sum + points, 0)
        return sum === total ? undefined : `${board.id} has ${sum} points, and the total ${total}`
      }
    },
    {
      name: "a score counts once",
      atRest: ({ attempts, stateOf }) => {
        for (const board of boards) {
          const own = attempts.filter(({ to }) => to.id === board.id)
          for (const player of players) {
            const { points = 0 } = stateOf<Board>(board).ranking.find((one) =>
              one.player === player
            ) ?? {}
            const least = pointsOf(own.filter(({ outcome }) => outcome === "ok"), player)
            const most = pointsOf(own.filter(({ outcome }) => outcome !== "fail"), player)
            if (points >= least && points <= most) continue
            return `${player} has ${points} points in ${board.id}, and not ${least} to ${most}`
          }
        }
        return undefined
      }
    },
    { name: "clients read their writes", atRest: ({ attempts }) => unseenWrite(attempts) }
  ]
} satisfies SimulateOptions
