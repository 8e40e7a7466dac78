/** The registry in memory. */
import { Effect } from "effect"
import { laterWith } from "../../runtime/clock.ts"
import { makeMemoryRegistry } from "../../runtime/memory/registry.ts"
import { inMemory } from "../suites/harness.ts"
import { registrySuite } from "../suites/registry.ts"

registrySuite("memory", inMemory(() => makeMemoryRegistry(laterWith(Effect.runFork))))
