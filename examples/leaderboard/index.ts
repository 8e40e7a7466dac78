/** A leaderboard: the points of players add up, and a repeated score counts once. */
import { become, defineActor, refuse, Schema, stay } from "@restante/runtime"

/** Players of one board: its whole state is written with each score. */
const playersMax = 1_000
/** The last scores, by whose keys a repeated one is recognized. */
const recentMax = 100

const Standing = Schema.Struct({ player: Schema.String, points: Schema.Int })
type Standing = typeof Standing.Type

/** The best first; players with as many points by name. */
const byPoints = (one: Standing, other: Standing): number =>
  other.points - one.points || (one.player < other.player ? -1 : 1)

/** The points of a player, and the rank from 1. */
const placeOf = (ranking: ReadonlyArray<Standing>, player: string) => {
  const at = ranking.findIndex((one) => one.player === player)
  return { points: ranking[at]?.points ?? 0, rank: at < 0 ? null : at + 1 }
}

/** One board for each id. `Score` and `Place` reply with points and rank, `Top` with the best. */
export const leaderboard = defineActor("leaderboard", {
  state: { Open: { ranking: Schema.Array(Standing), total: Schema.Int } },
  messages: {
    // The client makes the key: it repeats a score without an answer with the same key.
    Score: { player: Schema.String, points: Schema.Int, key: Schema.String },
    Place: { player: Schema.String },
    Top: { count: Schema.Int }
  },
  log: Schema.Struct({ player: Schema.String, points: Schema.Int, key: Schema.String }),
  recall: { items: recentMax, keyOf: ({ key }) => key },
  initial: { _tag: "Open", ranking: [], total: 0 },
  table: {
    Open: {
      Score: ({ ranking, total }, { key, player, points }, { findDuplicate, head }) => {
        if (findDuplicate(key) !== undefined) return stay().reply(placeOf(ranking, player))
        if (points < 1) return refuse("NoPoints", "a score has 1 point or more")
        const others = ranking.filter((one) => one.player !== player)
        if (others.length >= playersMax) return refuse("Full", "use a board for each league")
        const sum = placeOf(ranking, player).points + points
        const next = [...others, { player, points: sum }].sort(byPoints)
        const scored = become({ _tag: "Open", ranking: next, total: total + points })
          .append({ player, points, key })
          .reply(placeOf(next, player))
        return head < recentMax ? scored : scored.removeItems(head + 1 - recentMax)
      },
      Place: ({ ranking }, { player }) => stay().reply(placeOf(ranking, player)),
      Top: ({ ranking, total }, { count }) =>
        stay().reply({ total, best: ranking.slice(0, Math.max(0, count)) })
    }
  }
})
