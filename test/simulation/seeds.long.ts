/** The seeds of the long test run. */
import { describe } from "vitest"
import { playSeeds } from "./seeds.ts"

describe("a cluster in simulation", () => playSeeds(251, 3_750))
describe("a cluster on a simulated JetStream", () => playSeeds(61, 1_060, "jetstream"))
