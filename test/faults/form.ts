/** How much is done: a short form with every change, a long one by `npm run test:long`. */
import { randomBytes } from "node:crypto"
import type { Random } from "./random.ts"

/** How long each long form goes on, minutes: a run that has begun by then is ended. */
export const longMinutes = Number(process.env["FAULTS_MINUTES"] ?? "10")
/** Given, the same faults are chosen in the same order. */
export const seed = process.env["FAULTS_SEED"] ?? randomBytes(6).toString("hex")
/** Faults of one run. */
const faultsOfRun = 8

/** Chooses for one run among all that there are. */
type Names = (all: ReadonlyArray<string>) => ReadonlyArray<string>

/** Takes each in turn, in an order that changes with every turn. */
class Deck {
  private readonly random: Random
  private left: ReadonlyArray<string> = []

  constructor(random: Random) {
    this.random = random
  }

  readonly names: Names = (all) =>
    Array.from({ length: faultsOfRun }, () => {
      if (this.left.length === 0) this.left = all
      const name = this.random.of(this.left) ?? ""
      this.left = this.left.filter((one) => one !== name)
      return name
    })
}

/** Runs, one after the other, until the time is over. */
export const forLong = async (
  random: Random,
  run: (names: Names, seed: string) => Promise<void>
): Promise<void> => {
  const deck = new Deck(random)
  const endMs = performance.now() + longMinutes * 60_000
  for (let n = 0; performance.now() < endMs; n += 1) {
    await run(deck.names, `${random.seed} ${n}`)
  }
}
