/** The seeds of the long test run. */
import { describe } from "vitest"
import { playSeeds } from "./seeds.ts"

describe("a cluster in simulation", () => playSeeds(501, 3_500))
describe("a cluster on a simulated JetStream", () => playSeeds(121, 1_000, "jetstream"))
