/** The seeds on the storage of NATS that only the long test run plays. */
import { describe } from "vitest"
import { playSeeds } from "./seeds.ts"

describe("a cluster on a simulated JetStream", () => playSeeds(11, 240, "jetstream"))
