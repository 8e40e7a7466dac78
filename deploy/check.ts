/** Verifies a stopped store. */
import { Effect } from "effect"
import { inspect } from "../runtime/embedded/index.ts"
import type { CommandFailed } from "./failure.ts"
import { stopped } from "./serve.ts"

/** What was found: counts by what is counted, and one line for each problem. */
export interface CheckReport {
  readonly counts: Readonly<Record<string, number>>
  readonly problems: ReadonlyArray<string>
}

/** Reads all of the store in `dataDir`; fails when it is in use or cannot be opened. */
export const check = (dataDir: string): Effect.Effect<CheckReport, CommandFailed> =>
  inspect(dataDir).pipe(
    Effect.map(({ counts: { actors, ...counts }, faults }) => ({
      counts: {
        ...Object.fromEntries(
          Object.entries(actors).map(([kind, number]) => [`actors ${kind}`, number])
        ),
        ...counts
      },
      problems: faults
    })),
    // What keeps a node from starting is what this command was called to find.
    Effect.catchTag(
      "StorageDamaged",
      ({ detail }) => Effect.succeed<CheckReport>({ counts: {}, problems: [detail] })
    ),
    Effect.mapError((failure) => stopped(dataDir, failure))
  )
