/** The size of a run: a short form with every fault, a long one by `npm run test:long`. */
import { randomBytes } from "node:crypto"
import type { Random } from "./random.ts"

/** Duration of each long form, minutes; a run that has started by then is completed. */
export const minutesMax = Number(process.env["FAULTS_MINUTES"] ?? "10")

/** With a seed, a run chooses the same faults in the same order. */
export const seed = process.env["FAULTS_SEED"] ?? randomBytes(6).toString("hex")

/** Faults of one run. */
const faultsPerRun = 8

/** Chooses the faults of one run. */
type ChooseNames = (all: ReadonlyArray<string>) => ReadonlyArray<string>

/** Takes each in turn, in a new random order each time. */
class FaultDeck {
  private readonly random: Random
  private left: ReadonlyArray<string> = []

  constructor(random: Random) {
    this.random = random
  }

  readonly names: ChooseNames = (all) =>
    Array.from({ length: faultsPerRun }, () => {
      if (this.left.length === 0) this.left = all
      const name = this.random.of(this.left) ?? ""
      this.left = this.left.filter((one) => one !== name)
      return name
    })
}

/** Runs one after the other until the time is over. */
export const repeatRuns = async (
  random: Random,
  run: (names: ChooseNames, seed: string) => Promise<void>
): Promise<void> => {
  const deck = new FaultDeck(random)
  const endMs = performance.now() + minutesMax * 60_000
  for (let n = 0; performance.now() < endMs; n += 1) {
    await run(deck.names, `${random.seed} ${n}`)
  }
}
