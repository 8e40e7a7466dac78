/** Half of the seeds that only the long test run plays. */
import { describe } from "vitest"
import { playSeeds } from "./seeds.ts"

describe("a cluster in simulation", () => playSeeds(25, 488))
