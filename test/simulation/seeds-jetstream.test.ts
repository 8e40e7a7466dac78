/** The seeds of every test run with the real storage of NATS, above a simulated JetStream. */
import { describe } from "vitest"
import { playSeeds } from "./seeds.ts"

describe("a cluster on a simulated JetStream", () => playSeeds(1, 10, "jetstream"))
