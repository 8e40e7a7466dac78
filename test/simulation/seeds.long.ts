/** The seeds of the long test run. */
import { describe } from "vitest"
import { playSeeds } from "./seeds.ts"

describe("a cluster in simulation", () => playSeeds(501, 3_500))
