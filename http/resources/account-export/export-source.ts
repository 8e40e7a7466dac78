/** A line of an export, and how the lines of a resource are read. */
import { Effect } from "effect"
import type { OwnedEntry, OwnedResource } from "../../../actors/account/index.ts"
import { sealedParts, withoutPassword } from "../../../actors/index.ts"
import type { HandlerFailure, Service } from "../../pipeline/index.ts"

/** One line: a JSON object. */
export type ExportLine = Readonly<Record<string, string | number | undefined>>

/** The lines of a resource of an account. */
export type ExportSource = (
  service: Service,
  account: string,
  entry: OwnedEntry
) => AsyncIterable<ExportLine>

/** A failure ends the export, whose last line is then missing. */
export const run = <A>(effect: Effect.Effect<A, HandlerFailure>): Promise<A> =>
  Effect.runPromise(effect)

export const lineOf = (line: ExportLine): Uint8Array => Buffer.from(`${JSON.stringify(line)}\n`)

/** A stored fragment without the password of its message. */
export const withoutSecret = (fragment: string): string => {
  const parts = sealedParts(fragment)
  return parts === undefined ? fragment : withoutPassword(parts)
}

/** The tags of failures of one actor: a repetition of the export would fail there, too. */
const isOfActor = (error: unknown): boolean =>
  typeof error === "object" && error !== null && "_tag" in error &&
  (error._tag === "Quarantined" || error._tag === "ActorDefect")

/**
 * The lines of a resource; the last one says if the rest of it is unavailable. Without that, one
 * actor in quarantine would end the export of everything else. Other failures end it.
 */
export async function* availableLines(
  of: OwnedResource | "pauses" | "registration",
  id: string,
  lines: AsyncIterable<ExportLine>
): AsyncGenerator<ExportLine> {
  try {
    yield* lines
  } catch (error) {
    if (!isOfActor(error)) throw error
    yield { kind: "unavailable", of, id }
  }
}
