/** The other half of the seeds of every test run. */
import { describe } from "vitest"
import { playSeeds } from "./seeds.ts"

describe("a cluster in simulation", () => playSeeds(13, 12))
