/** A line of an export, and how the lines of a resource are read. */
import { Effect } from "effect"
import type { OwnedEntry } from "../../../actors/account/index.ts"
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
